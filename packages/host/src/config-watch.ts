import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

import { fileStamp, FileWatcher, type FileLook } from '@patchbay/files';

/** Tells when a configuration file was changed, has appeared or is gone. */
export class ConfigWatch {
  readonly #files: readonly string[];
  readonly #onChange: () => void;
  #watcher: FileWatcher | undefined;

  constructor(files: readonly string[], onChange: () => void) {
    this.#files = files;
    this.#onChange = onChange;
  }

  /** @param known how the files were before they were read: what is different by now is told */
  async start(known: ReadonlyMap<string, string>): Promise<void> {
    this.#watcher = new FileWatcher({
      source: 'host',
      look: () => this.look(),
      known,
      onChange: this.#onChange,
    });
    await this.#watcher.start();
  }

  async look(): Promise<FileLook> {
    const files = new Map<string, string>();
    const folders = new Map<string, (name: string) => boolean>();
    for (const file of this.#files) {
      const found = await stat(file, { bigint: true }).catch(() => undefined);
      if (found?.isFile() === true) files.set(file, fileStamp(found));
      const others = folders.get(dirname(file));
      folders.set(dirname(file), (name) => name === basename(file) || others?.(name) === true);
    }
    return { files, folders, ways: this.#files };
  }

  close(): void {
    this.#watcher?.close();
  }
}
