import { isDeepStrictEqual } from 'node:util';

import type { Arm, Case, Cost, Goal } from './case.ts';
import { summarize, type Summary } from './statistics.ts';

/** How much time a case gets, and when it is measured well enough. */
export interface Limits {
  /** Milliseconds for the measured rounds of one case. */
  readonly timeMs: number;
  /** Rounds that every case gets, also beyond the time. */
  readonly minRounds: number;
  /** The relative spread of every ratio at which a case is done. */
  readonly spread: number;
  /** Milliseconds that an arm whose runs are shorter runs before each one that counts. */
  readonly leadMs: number;
}

interface ArmResult {
  readonly name: string;
  readonly value: Summary;
  readonly cpu: Summary;
}

/** The cost of `arm` divided by that of `against`, round by round: what slows the machine down slows down both. */
interface Ratio {
  readonly arm: string;
  readonly against: string;
  readonly of: 'value' | 'cpu';
  readonly ratio: Summary;
}

export interface CaseResult {
  readonly name: string;
  readonly unit: string;
  readonly arms: readonly ArmResult[];
  readonly ratios: readonly Ratio[];
  readonly goals: readonly (Goal & { readonly measured: number })[];
  /** Whether all goals are. */
  readonly met: boolean;
}

type Sample = Required<Cost>;

/** Measures a case: sets its arms up, runs them interleaved, compares their answers, and takes them down. */
export async function measure(work: Case, limits: Limits): Promise<CaseResult> {
  const started: Arm[] = [];
  try {
    for (const arm of work.arms) {
      started.push(arm);
      await arm.setup?.();
    }
    for (let i = 0; i < (work.once ? 0 : (work.warmUp ?? 3)); i++)
      for (const arm of work.arms) await arm.run();
    const rounds = await interleave(work, limits);
    await compareAnswers(work);
    return summarizeCase(work, rounds);
  } finally {
    for (const arm of started.toReversed()) await arm.teardown?.();
  }
}

/** A round runs every arm twice, there and back (A B C C B A): no arm is always first, or always after the same one. */
async function interleave(work: Case, limits: Limits): Promise<ReadonlyMap<Arm, Sample[]>> {
  const samples = new Map<Arm, Sample[]>(work.arms.map((arm) => [arm, []]));
  const end = performance.now() + limits.timeMs;
  for (let round = 1; ; round++) {
    const pairs = new Map<Arm, Sample[]>(work.arms.map((arm) => [arm, []]));
    for (const arm of [...work.arms, ...(work.once ? [] : work.arms.toReversed())])
      pairs.get(arm)?.push(await sample(arm));
    for (const [arm, pair] of pairs)
      samples.get(arm)?.push({ value: mean(pair, 'value'), cpu: mean(pair, 'cpu') });
    if (work.once) return samples;
    if (round < Math.min(limits.minRounds, work.rounds ?? Infinity)) continue;
    const wide = ratiosOf(work, samples).some(({ ratio }) => ratio.spread >= limits.spread);
    if (!wide || performance.now() >= end) return samples;
  }
}

/** One run of it, by the clocks of this process where it does not say what it cost. */
export async function sample(arm: Arm): Promise<Sample> {
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  const own = await arm.run();
  const value = performance.now() - before;
  const { user, system } = process.cpuUsage(cpuBefore);
  return own ? { cpu: 0, ...own } : { value, cpu: (user + system) / 1000 };
}

async function compareAnswers(work: Case): Promise<void> {
  const answers = await Promise.all(
    work.arms.flatMap((arm) =>
      arm.answer ? [arm.answer().then((answer) => ({ name: arm.name, answer }))] : [],
    ),
  );
  const [first, ...others] = answers;
  const different = others.filter(({ answer }) => !isDeepStrictEqual(answer, first?.answer));
  if (different.length > 0)
    throw new Error(
      `"${work.name}": ${different.map(({ name }) => name).join(', ')} and ${first?.name} did different work. Compare their answers before their times.`,
    );
}

/** The goals' ratios, and the first arm against every other one. */
function ratiosOf(work: Case, samples: ReadonlyMap<Arm, readonly Sample[]>): readonly Ratio[] {
  const costs = (name: string) => samples.get(work.arms.find((arm) => arm.name === name)!) ?? [];
  const wanted = new Map<string, Omit<Ratio, 'ratio'>>();
  const want = (arm: string, against: string, of: 'value' | 'cpu') =>
    wanted.set(JSON.stringify([arm, against, of]), { arm, against, of });
  for (const { arm, against, of } of work.goals) if (against !== undefined) want(arm, against, of);
  const [first, ...others] = work.arms;
  for (const other of others) if (first) want(first.name, other.name, 'value');
  return [...wanted.values()].map(({ arm, against, of }) => {
    const below = costs(against);
    const values = costs(arm).map((cost, round) => cost[of] / (below[round]?.[of] ?? Number.NaN));
    return { arm, against, of, ratio: summarize(values) };
  });
}

function summarizeCase(work: Case, samples: ReadonlyMap<Arm, readonly Sample[]>): CaseResult {
  const arms = [...samples].map(([{ name }, runs]) => ({
    name,
    value: summarize(runs.map(({ value }) => value)),
    cpu: summarize(runs.map(({ cpu }) => cpu)),
  }));
  const ratios = ratiosOf(work, samples);
  const goals = work.goals.map((goal) => {
    const found =
      goal.against === undefined
        ? arms.find(({ name }) => name === goal.arm)?.[goal.of]
        : ratios.find((r) => r.arm === goal.arm && r.against === goal.against && r.of === goal.of)
            ?.ratio;
    return { ...goal, measured: found?.median ?? Number.NaN };
  });
  const met = goals.every(({ measured, atMost }) => measured <= atMost);
  return { name: work.name, unit: work.unit, arms, ratios, goals, met };
}

const mean = (samples: readonly Sample[], of: keyof Sample): number =>
  samples.reduce((sum, one) => sum + one[of], 0) / samples.length;
