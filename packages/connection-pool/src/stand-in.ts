/** In the `data` of an error that stands for an answer which never came. */
export const LOST = 'patchbay/connection-lost';

/** In the `data` of an error that stands for an answer which was longer than allowed: the limit in bytes. */
export const TOO_LARGE = 'patchbay/too-large';
