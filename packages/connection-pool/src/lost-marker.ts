/** In the `data` of an error that stands for an answer which never came. */
export const LOST = 'patchbay/connection-lost';
