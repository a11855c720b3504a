export type { PoolAuthorization } from './auth/authorizations.ts';
export type { CredentialKey, Credentials, CredentialStore } from './auth/credential-store.ts';
export type { Login, LoginHandler, LoginRequest } from './auth/login.ts';
export type { BackOff, Clock } from './back-off.ts';
export { ConnectionPool, type InspectedConnection, type PoolOptions } from './connection-pool.ts';
export { eraMemory, type EraStore, type EraVerdict } from './era-store.ts';
export { isPublicAddress, type AllowAddress } from './http/public-address.ts';
