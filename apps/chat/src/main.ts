import { ruleModel } from './rule-model.ts';
import { startService } from './service.ts';

const service = await startService(ruleModel(), Number(process.env['PORT'] ?? 3000));
console.log(`Open ${service.url} and write "add 2 3" or "refunds?". Ctrl+C ends it.`);
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void service.close().then(() => process.exit(0)));
