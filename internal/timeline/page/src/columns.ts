// SPDX-License-Identifier: Apache-2.0
// Columns of numbers, as ../../format.go describes them.

type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

// Column reads the values of a column one after the other.
export class Column {
  constructor(private readonly bytes: Uint8Array, private at: number, private readonly end: number) {}

  get more(): boolean {
    return this.at < this.end;
  }

  // next reads a number below 2^53.
  next(): number {
    let b = this.bytes[this.at++]!;
    if (b < 0x80) return b;
    let v = b & 0x7f;
    let factor = 0x80;
    for (;;) {
      b = this.bytes[this.at++]!;
      v += (b & 0x7f) * factor;
      if (b < 0x80) return v;
      factor *= 0x80;
    }
  }

  // signed reads a difference between numbers below 2^52.
  signed(): number {
    const v = this.next();
    return v % 2 === 0 ? v / 2 : -(v + 1) / 2;
  }

  // fill reads as many numbers as an array has room for; plus is added to each.
  fill<T extends Numbers>(into: T, plus = 0): T {
    for (let i = 0; i < into.length; i++) into[i] = this.next() + plus;
    return into;
  }

  // sums reads what each number of an array has more than the one before.
  sums<T extends Numbers>(into: T): T {
    for (let i = 0, at = 0; i < into.length; i++) into[i] = at += this.next();
    return into;
  }

  // signedSums reads differences between the numbers of an array; plus is added to each.
  signedSums<T extends Numbers>(into: T, plus = 0): T {
    for (let i = 0, at = 0; i < into.length; i++) into[i] = (at += this.signed()) + plus;
    return into;
  }

  // double reads a number of 8 bytes.
  double(): number {
    const v = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 8).getFloat64(0, true);
    this.at += 8;
    return v;
  }

  // big reads a difference of 64 bits.
  big(): bigint {
    const from = this.at;
    let v = 0n;
    let length = 0;
    while (this.bytes[this.at]! >= 0x80) {
      this.at++;
      length++;
    }
    this.at++;
    if (length < 7) {
      this.at = from;
      return BigInt(this.signed());
    }
    for (let i = length; i >= 0; i--) v = (v << 7n) | BigInt(this.bytes[from + i]! & 0x7f);
    return (v >> 1n) ^ -(v & 1n);
  }
}

// Columns gives the columns of a block in their order.
export class Columns {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  next(): Column {
    const length = new Column(this.bytes, this.at, this.bytes.length);
    const n = length.next();
    let size = 1;
    for (let v = n; v >= 0x80; v = Math.floor(v / 0x80)) size++;
    const from = this.at + size;
    this.at = from + n;
    return new Column(this.bytes, from, this.at);
  }
}

// Note is an attribute of a bar: the number of its definition, and its 64 bits.
export interface Note {
  id: number;
  value: bigint;
}

// Notes are the attribute lists of a block. They are decoded on first use, because few blocks are inspected closely.
export class Notes {
  private lists: Note[][] | undefined;
  constructor(private readonly columns: Columns) {}

  of(i: number): Note[] {
    this.lists ??= readNotes(this.columns);
    return this.lists[i] ?? [];
  }
}

function readNotes(columns: Columns): Note[][] {
  const of: number[] = [];
  for (const c = columns.next(); c.more; ) of.push(c.next());
  const shapes: number[][] = [];
  for (const c = columns.next(); c.more; ) shapes.push(Array.from({ length: c.next() }, () => c.next()));
  const values = shapes.map((ids) => ids.map(() => ({ column: columns.next(), last: 0n })));
  return of.map((shape) =>
    shapes[shape]!.map((id, i) => {
      const v = values[shape]![i]!;
      v.last = BigInt.asUintN(64, v.last + v.column.big());
      return { id, value: v.last };
    }),
  );
}
