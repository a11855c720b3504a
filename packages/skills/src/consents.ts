import {
  toPatchbayError,
  type CompileContext,
  type Json,
  type PeerSkill,
  type Problem,
  type SessionState,
  type SkillEntry,
  type TrustPolicy,
} from '@patchbay/protocols';

import type { SkillReference } from './activations.ts';
import { oneLine } from './catalogue.ts';
import { endsWithin } from './ends-within.ts';
import { askedBy, plainEntry, type Asked } from './served-wants.ts';

/** What a user said to what a skill asks for, as the session remembers it. */
export interface SkillConsent extends SkillReference {
  /** `sha256:` and 64 hex digits of what the answer is about: it holds for nothing else. */
  readonly content: string;
  readonly granted: boolean;
  /** What it asked for, for people. */
  readonly wants: readonly string[];
  /** What `allowed-tools` names, where it is granted. */
  readonly tools?: readonly string[];
  /** Why it is a no, where nobody said so. */
  readonly reason?: string;
}

const KEY = 'skills.consents';
/** A compile waits this long for an answer, counted from the question; later ones are announced. */
const MAX_WAIT_MS = 1_000;

/** Every answer that a session remembers about skills of servers. `state` is the session's (`registry.state({ session })`). */
export function skillConsents(state: SessionState): readonly SkillConsent[] {
  const stored = state.get(KEY);
  // What was restored may be anything.
  return Array.isArray(stored) ? (stored as readonly Json[]).filter(isConsent) : [];
}

/** Forgets an answer: what it granted is over at the next compile, and the next time that it matters it is asked again. */
export function revokeConsent(state: SessionState, skill: SkillReference): void {
  store(
    state,
    skillConsents(state).filter((known) => !isOf(known, skill)),
  );
}

/** The answer about a skill, if it is about this content. */
export function consentTo(
  state: SessionState,
  skill: SkillReference,
  content: string | undefined,
): SkillConsent | undefined {
  return skillConsents(state).find((known) => isOf(known, skill) && known.content === content);
}

/** A question that is open. */
interface Question {
  readonly until: number;
  readonly answered: Promise<void>;
  /** Somebody went on without it. */
  late: boolean;
}

/**
 * Grants skills of servers what they ask for, if the user said yes to it for this very content. Skills of other sources
 * are left as they are.
 */
export class Consents {
  readonly #policy: TrustPolicy | undefined;
  readonly #announce: () => void;
  readonly #asked = new WeakMap<SkillEntry, Asked>();
  readonly #open = new Map<string, Question>();

  /** `announce` is called when an answer comes after somebody stopped waiting for it. */
  constructor(policy: TrustPolicy | undefined, announce: () => void) {
    this.#policy = policy;
    this.#announce = announce;
  }

  /** What it asks for; the same object for the same entry. */
  asked({ source, entry }: Pick<PeerSkill, 'source' | 'entry'>): Asked {
    const known = this.#asked.get(entry);
    if (known !== undefined) return known;
    const asked = askedBy(source, entry);
    this.#asked.set(entry, asked);
    return asked;
  }

  /**
   * The skills with what they are granted. Asked are those that want to be active always, and those that are
   * (`isActive`); who asks for nothing is not asked about.
   */
  async admit(
    skills: readonly PeerSkill[],
    context: Pick<CompileContext, 'scope' | 'state' | 'signal'>,
    isActive: (skill: SkillReference) => boolean,
  ): Promise<{ readonly skills: readonly PeerSkill[]; readonly problems: readonly Problem[] }> {
    const problems: Problem[] = [];
    const admitted = skills.map(async (skill): Promise<PeerSkill> => {
      const { source, entry } = skill;
      if (!needsConsent(entry)) return skill;
      const asked = this.asked(skill);
      const { grants, wants, content, limits } = asked;
      const plain = { ...plainEntry(entry), ...limits };
      const admittedAs = (as: SkillEntry): PeerSkill => {
        // It keeps the identity under which what it asks for is known.
        this.#asked.set(as, asked);
        return { source, entry: as, open: () => skill.open() };
      };
      if (wants.length === 0) return admittedAs(plain);
      const reference = { source, uri: entry.uri };
      const matters = () => grants.alwaysActive === true || isActive(reference);
      const consent =
        content === undefined || this.#policy === undefined
          ? undefined
          : (consentTo(context.state, reference, content) ??
            (matters() ? await this.#ask(skill, content, context) : 'unasked'));
      if (consent === 'unasked') return admittedAs(plain);
      if (consent?.granted === true) return admittedAs({ ...plain, ...grants });
      problems.push(refusal(skill, asked, this.#policy === undefined, consent));
      return admittedAs(plain);
    });
    return { skills: await Promise.all(admitted), problems: problems.toSorted(byMessage) };
  }

  async #ask(
    skill: PeerSkill,
    content: string,
    { scope, state, signal }: Pick<CompileContext, 'scope' | 'state' | 'signal'>,
  ): Promise<SkillConsent | undefined> {
    const { source, entry } = skill;
    const key = JSON.stringify([scope.session, source, entry.uri, content]);
    let question = this.#open.get(key);
    if (question === undefined) {
      question = {
        until: Date.now() + MAX_WAIT_MS,
        answered: this.#put(skill, state),
        late: false,
      };
      const opened = question;
      this.#open.set(key, opened);
      void opened.answered.then(() => {
        this.#open.delete(key);
        if (opened.late) this.#announce();
      });
    }
    if (!(await endsWithin(question.answered, question.until - Date.now(), signal)))
      question.late = true;
    return consentTo(state, { source, uri: entry.uri }, content);
  }

  /** Asks, and remembers what is said. Never throws. */
  async #put(skill: PeerSkill, state: SessionState): Promise<void> {
    const { source, entry } = skill;
    const { wants, grants, content = '' } = this.asked(skill);
    const { name, origin, uri } = entry;
    const reference = { source, uri };
    const answer = { ...reference, content, wants };
    let consent: SkillConsent;
    try {
      const said: unknown = await this.#policy!({
        kind: 'skill',
        name,
        origin,
        wants,
        hash: content,
      });
      const { preApprovedTools: tools } = grants;
      const granted = said === true;
      consent = { ...answer, granted, ...(granted && tools !== undefined ? { tools } : {}) };
    } catch (error) {
      const reason = oneLine(toPatchbayError(error).message);
      consent = { ...answer, granted: false, reason };
    }
    const others = skillConsents(state).filter((known) => !isOf(known, reference));
    store(state, [...others, consent]);
  }
}

/** One for each skill: what it asked for, and how to allow it. */
function refusal(
  { source, entry }: PeerSkill,
  { wants, content }: Asked,
  nobody: boolean,
  consent: SkillConsent | undefined,
): Problem {
  const why =
    content === undefined
      ? 'Its files are not fixed, so that nobody can agree to them; nothing of it is granted.'
      : nobody
        ? 'Nothing of it is granted. Give `trust` to the host, or to SkillManagerCapability, to be asked.'
        : consent === undefined
          ? 'It is being asked, and takes effect when somebody says yes.'
          : consent.reason === undefined
            ? 'It was refused. Forget the answer with revokeConsent() to be asked again.'
            : `The trust policy failed (${consent.reason}), which is a no. Forget it with revokeConsent() to be asked again.`;
  return {
    source,
    code: 'skill-consent',
    severity: 'warning',
    message: `The skill "${oneLine(entry.name)}" of ${entry.served === undefined ? entry.origin : `the server "${entry.served.server}"`} works, but asks to ${wants.join('; to ')}. ${why}`,
  };
}

function store(state: SessionState, consents: readonly SkillConsent[]): void {
  const plain = consents.map((consent) => ({ ...consent, ...lists(consent) }));
  state.set(KEY, plain.length === 0 ? undefined : plain);
}

const lists = ({ wants, tools }: SkillConsent) => ({
  wants: [...wants],
  ...(tools === undefined ? {} : { tools: [...tools] }),
});

/** Whether what it asks for is nobody's to give but a user's. */
export const needsConsent = (entry: SkillEntry): boolean =>
  entry.served !== undefined || entry.untrusted === true;

const isOf = (consent: SkillReference, { source, uri }: SkillReference): boolean =>
  consent.source === source && consent.uri === uri;

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

function isConsent(value: unknown): value is SkillConsent & Json {
  if (typeof value !== 'object' || value === null) return false;
  const { source, uri, content, granted, wants, tools, reason } = value as Record<string, unknown>;
  return (
    [source, uri, content].every((text) => typeof text === 'string') &&
    typeof granted === 'boolean' &&
    isTexts(wants) &&
    (tools === undefined || isTexts(tools)) &&
    (reason === undefined || typeof reason === 'string')
  );
}

const byMessage = (a: Problem, b: Problem): number => (a.message < b.message ? -1 : 1);
