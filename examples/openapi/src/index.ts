export { OpenApi, type OpenApiOptions } from './openapi.ts';
