import { readFileSync, writeFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';

import { MemorySaver } from '@langchain/langgraph';

type Kept = Pick<MemorySaver, 'storage' | 'writes'>;

/** A checkpointer whose threads outlive the process: written to a file after each change. */
export class FileSaver extends MemorySaver {
  readonly #file: string;

  constructor(file: string) {
    super();
    this.#file = file;
    try {
      Object.assign(this, deserialize(readFileSync(file)) as Kept);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error;
    }
  }

  override async put(...args: Parameters<MemorySaver['put']>): ReturnType<MemorySaver['put']> {
    const config = await super.put(...args);
    this.#keep();
    return config;
  }

  override async putWrites(...args: Parameters<MemorySaver['putWrites']>): Promise<void> {
    await super.putWrites(...args);
    this.#keep();
  }

  #keep(): void {
    const { storage, writes } = this;
    writeFileSync(this.#file, serialize({ storage, writes } satisfies Kept));
  }
}
