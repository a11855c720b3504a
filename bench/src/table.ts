import type { CaseResult } from './measure.ts';
import type { Summary } from './statistics.ts';

const number = (value: number) => String(Number(value.toPrecision(3)));
const show = (value: number) => (value >= 1000 ? value.toFixed(0) : number(value));
const percent = ({ spread }: Summary) => `±${(spread * 100).toFixed(0)} %`;

/** One case as lines of text: its arms, then its goals. */
export function table({ name, unit, arms, goals, ratios, met }: CaseResult): string {
  const width = Math.max(...arms.map((arm) => arm.name.length));
  const rows = arms.map(({ name: arm, value, cpu }) => {
    const ratio = ratios.find((one) => one.against === arm && one.of === 'value')?.ratio;
    const cells = [
      `  ${arm.padEnd(width)}`,
      `${show(value.median)} ${unit} ${percent(value)}`.padStart(22),
      `cpu ${show(cpu.median)} ms`.padStart(16),
      `${value.runs} runs`.padStart(10),
      ratio ? `   ${arms[0]?.name} is ${show(ratio.median)}x ${percent(ratio)}` : '',
    ];
    return cells.join('').trimEnd();
  });
  const aims = goals.map(({ arm, against, of, atMost, measured }) => {
    const what = of === 'cpu' ? 'cpu ' : '';
    const limit =
      against === undefined ? `${number(atMost)} ${unit}` : `${number(atMost)}x ${against}`;
    return `  ${measured <= atMost ? 'met   ' : 'MISSED'} ${arm}: ${what}${show(measured)}, goal <= ${limit}`;
  });
  return [`${name}${met ? '' : '  (goals missed)'}`, ...rows, ...aims].join('\n');
}
