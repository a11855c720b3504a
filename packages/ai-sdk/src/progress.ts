import type { Progress, ToolResult } from '@patchbay/protocols';

/** A call that gives its signs of life as preliminary results, and at last its result. */
export async function* withProgress(
  call: (onProgress: (progress: Progress) => void) => Promise<ToolResult>,
): AsyncGenerator<ToolResult> {
  const newest: Progress[] = [];
  let wake: () => void = () => undefined;
  const result = call((progress) => {
    newest[0] = progress;
    wake();
  });
  const end = result.then(
    () => 'ended',
    () => 'ended',
  );
  for (;;) {
    const news = new Promise<void>((resolve) => (wake = resolve));
    if (newest.length === 0 && (await Promise.race([end, news])) === 'ended') break;
    for (const progress of newest.splice(0)) yield progressResult(progress);
  }
  yield await result;
}

function progressResult({ progress, total, message }: Progress): ToolResult {
  const text = [`${progress}${total === undefined ? '' : ` of ${total}`}`, message]
    .filter(Boolean)
    .join(': ');
  return {
    content: [{ type: 'text', text }],
    meta: {
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message }),
    },
  };
}
