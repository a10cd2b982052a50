// What was called, and what came of it.

import { writeFileSync } from "node:fs";

// What a call of either client returns.
interface Answered<D> {
  data?: D;
  error?: unknown;
  response?: Response;
}

// A server, a token for it, and the file that a line for each operation is written to.
export function given(): { base: string; token: string; target: string } {
  const [base, token, target] = process.argv.slice(2);
  if (base === undefined || token === undefined || target === undefined) {
    throw new Error("expected BASE TOKEN TARGET");
  }
  return { base, token, target };
}

export class Calls {
  private lines: string[] = [];

  // Waits for an answer, and notes it; the status has to be the expected one.
  async note<D>(
    operation: string,
    expected: number,
    answered: Promise<Answered<D>>,
  ): Promise<NonNullable<D>> {
    const { data, error, response } = await answered;
    const status = response?.status;
    if (status !== expected) {
      const found = JSON.stringify(error);
      throw new Error(`${operation}: expected ${expected}, found ${status}: ${found}`);
    }
    this.lines.push(`${operation}\t${status}\n`);
    return data as NonNullable<D>;
  }

  // Waits for an answer that was noted before.
  async once<D>(answered: Promise<Answered<D>>): Promise<NonNullable<D>> {
    const { data, error } = await answered;
    this.expect(data !== undefined, error);
    return data as NonNullable<D>;
  }

  expect(holds: boolean, found: unknown): void {
    if (!holds) {
      throw new Error(`not what was expected: ${JSON.stringify(found)}`);
    }
  }

  run(parts: (() => Promise<void>)[], target: string): void {
    const all = async () => {
      for (const part of parts) {
        await part();
      }
      writeFileSync(target, this.lines.join(""));
    };
    all().catch((error: unknown) => {
      console.error(error);
      process.exitCode = 1;
    });
  }
}
