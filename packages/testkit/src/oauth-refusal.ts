/** An answer that an OAuth endpoint gives instead of a token: `code` is one of RFC 6749, 7591 or 8707. */
export class OAuthRefusal extends Error {
  readonly code: string;
  readonly status: number;
  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}
