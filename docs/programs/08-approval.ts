import { aiSdk } from '@patchbay/ai-sdk';
import { createHost } from '@patchbay/host';
import { langchain } from '@patchbay/langchain';
import type { ApprovalPolicy } from '@patchbay/protocols';

// One policy, both frameworks: by annotation, by server, by name.
const policy: ApprovalPolicy = ({ tool, args }) =>
  tool.annotations?.readOnlyHint === true
    ? 'allow'
    : tool.id.capability === 'payments'
      ? { ask: `Pay ${String(args['amount'])}?` }
      : 'ask';

export const host = await createHost({ approval: policy }); // closed by whoever uses it
const session = await host.openSession('user-42');
const view = session.agent('coder').view();

export const forAiSdk = aiSdk(view); // needsApproval / toolApproval of ai 6 and 7
export const forLangchain = langchain(view); // an interrupt with approve, edit, reject
