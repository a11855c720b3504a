import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

/** A small MCP server whose tool list changes: it learns a trick when it is told to. */
const server = new McpServer({ name: 'tricks', version: '1.0.0' });
const says = (text) => ({ content: [{ type: 'text', text }] });

server.registerTool(
  'learn_trick',
  { description: 'Learns a trick.', inputSchema: z.object({}) },
  () => {
    trick.enable();
    return says('I know a trick now.');
  },
);
const trick = server.registerTool(
  'do_trick',
  { description: 'Does the trick.', inputSchema: z.object({}) },
  () => says('A rabbit out of a hat.'),
);
trick.disable();

await server.connect(new StdioServerTransport());
