// How many epochs of a run are done, between two of its ledger's lines. What workers compute is no measure of it alone: samples of steps that
// are passed over are done without being computed, and batches that wrap around are computed beyond an epoch. As the run store has it.

export class RunPosition {
  private known: { epochs: number; computed: number };

  /** A session begins after `begun` epochs. `epochs` of the run; 0: not known. */
  constructor(readonly begun: number, readonly epochSamples: number, readonly epochs: number) {
    this.known = { epochs: begun, computed: 0 };
  }

  /** So many epochs are done when this session has computed so many samples. What is older than what is known changes nothing. */
  learn(epochs: number, computed: number): void {
    if (computed >= this.known.computed && epochs >= this.known.epochs) this.known = { epochs, computed };
  }

  /** Epochs done when this session has computed so many samples. */
  after(computed: number): number {
    const done = this.known.epochs - this.begun;
    const each = done > 0 && this.known.computed > 0 ? this.known.computed / done : this.epochSamples;
    const epochs = this.known.epochs + Math.max(computed - this.known.computed, 0) / each;
    return this.epochs > 0 ? Math.min(epochs, this.epochs) : epochs;
  }
}

/** Epochs done, as a ledger line says; null: its numbers make no sense. */
export function ledgerPosition(line: { epoch: number; size: number; omitted: number; done: number; given_up: number }): number | null {
  const whole = line.size - line.omitted;
  const finished = line.done + line.given_up;
  return line.epoch >= 0 && whole > 0 && finished >= 0 && finished <= whole ? line.epoch + finished / whole : null;
}
