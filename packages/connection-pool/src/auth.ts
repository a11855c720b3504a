export { memoryCredentials } from './auth/credential-store.ts';
export { loopbackLogin, type LoopbackOptions } from './auth/loopback-login.ts';
