/**
 * The same response; its body fails as soon as one message in it is longer than `maxBytes`: the whole of it, or one event
 * of a stream.
 */
export function limited(response: Response, maxBytes: number, tooLong: () => Error): Response {
  const { body, headers, ok } = response;
  if (body === null || !ok) return response;
  const isStream = isEventStream(response);
  if (!isStream && Number(headers.get('content-length') ?? Number.NaN) <= maxBytes) return response;
  let bytes = 0;
  const counted = body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        const end = isStream ? endOfEvent(chunk) : -1;
        bytes = end === -1 ? bytes + chunk.length : chunk.length - end;
        if (bytes > maxBytes) controller.error(tooLong());
        else controller.enqueue(chunk);
      },
    }),
  );
  return new Response(counted, response);
}

export const isEventStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;

/** Where the last event that ends in a chunk does. One that ends between two chunks is found with the next. */
function endOfEvent({ buffer, byteOffset, length }: Uint8Array): number {
  const chunk = Buffer.from(buffer, byteOffset, length);
  return Math.max(chunk.lastIndexOf('\n\n'), chunk.lastIndexOf('\n\r\n'));
}
