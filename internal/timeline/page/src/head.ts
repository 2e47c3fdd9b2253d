// SPDX-License-Identifier: Apache-2.0
// The head, which the page has from the start: the JSON that ../../head.go writes. Times are ns.

export interface Series {
  block: number;
  count: number;
}

export interface HeadRow {
  name: string;
  kind: "host" | "process" | "device" | "thread" | "rank" | "channel" | "network" | "event" | "stream" | "sensors" | "metric";
  parent: number;
  location?: string;
  lanes: [number, number];
  cut?: number;
  transfers: Series;
  operations: Series;
  firstOps?: number[];
}

// HeadSeries describes what a location recorded of a metric; it counts intervals.
export interface HeadSeries extends Series {
  end: number; // of the last interval
  closed: boolean; // the last interval lies after the last values
  members: HeadMetric[];
}

export interface HeadMetric {
  row: number;
  description: string;
  unit: string;
  mode: string; // as OTF2 names it
  timing: "next" | "last" | "rate"; // what is shown of an interval: the value at its begin, at its end, how fast it grew
  type: "UINT64" | "INT64" | "DOUBLE";
  factor: number; // factor from the recorded value to the unit
  divisor: number;
}

export interface Flow {
  from: number;
  to: number;
  count: number;
  bytes: number;
}

// Path is the critical path: segments in blocks.
export interface Path extends Series {
  starts: number[]; // by block: begin of its first segment
  what: { activity: string; operation?: string; comm: number }[]; // what segments are in; comm −1: none
}

// TimedSeries are items sorted by time, in blocks.
export interface TimedSeries extends Series {
  starts: number[]; // by block: begin of its first item
}

// Phase is an execution of a phase that the application marked, over all ranks.
export interface Phase {
  name: string; // with those of the phases around it
  kind: string; // the name with * for final numbers
  depth: number;
  from: number; // begin on the first rank
  to: number; // end on the last rank
  count: number; // number of ranks
  time: number; // of all ranks together
  most: number; // of the slowest rank
  slowest: number; // that rank; −1: unknown
}

export interface Rank {
  name: string;
  host: string;
  row: number;
  time: number;
  waited: number;
  caused: number;
  back: number; // waiting of others that its own delay caused
  backBy?: number[]; // the same by the kinds of charges; not there: nothing
  last: number;
  worst: number;
  worstAt: number;
}

// Culprit is a rank or a link that made the others wait, as in ../../../analysis/verdict.
export interface Culprit {
  rank: number; // index into ranks
  host: string;
  gpu: string;
  kind: string; // "host_late"
  peer: number | null;
  share: number; // of all waiting, as far as its own work explains it
  caused: number; // of all waiting
  time_share: number; // of the run
  confidence: number;
  pattern: string;
  evidence: string;
  at: number; // when it cost the most
  late: number; // its delay then; 0: not one time
}

// Answer is the report below its verdict, with the places that it refers to.
export interface Answer {
  from: number; // of the run without start-up and what followed the last operation; both 0: unknown
  to: number;
  lines: Said[];
  windows: Window[];
  worst: Worst[];
}

export interface Said {
  name: string; // "": continues the line before
  text: string;
  from?: number;
  to?: number; // absent: the line refers to no time
  search?: string; // filter for the table of operations
}

// Window is the waiting in a window of time.
export interface Window {
  from: number;
  to: number;
  waits: number;
  waited: number;
  share: number; // of the time of all ranks
  rank: number; // that caused the largest part; −1: unknown
  back: number; // that part
}

// Worst is an operation with much waiting.
export interface Worst {
  comm: string;
  operation: string;
  ordinal: number;
  since: number; // the first begin
  at: number; // the last begin
  rank: number; // that was waited for; −1: unknown
  phase?: string;
  caused: number;
  uncertainty: number | null; // of it; null: not stated
}

// Plot is bandwidth over size, laid out by ../../../report/plot.go: positions are shares of the axes from lower left.
export interface Plot {
  sizes: Tick[];
  bandwidths: Tick[];
  lines: PlotLine[];
  left: number; // number of curves that are not drawn
}

export interface Tick {
  at: number;
  text: string;
}

export interface PlotLine {
  name: string;
  colors: [light: string, dark: string];
  mark: string; // path of SVG around 0,0
  replayed: boolean;
  points: PlotPoint[];
}

export interface PlotPoint {
  x: number;
  y: number;
  size: string;
  busbw: string; // GB/s
  algbw: string;
  operations: number;
}

export interface Marker {
  time: number;
  length: number;
  kind: string;
  severity: string;
  text: string;
  row: number;
}

export interface Attribute {
  id: number;
  name: string;
  description: string;
  type: string;
}

export interface Head {
  version: number;
  tool: string;
  title: string;
  origin: string;
  realtime: boolean;
  duration: number; // to the end of what is shown
  begin: number; // of what is selected; 0: everything is
  selection: string; // as flags of the tool have it; "": everything
  chunk: number;
  leaf: number;
  categories: string[];
  regions: { name: string; category: number }[];
  attributes: Attribute[];
  texts: Record<string, string>;
  rows: HeadRow[];
  lanes: { first: number; count: number; block: number }[];
  comms: { ref: number; name: string; members: number[] }[];
  functions: string[];
  waitKinds: string[];
  ranks: Rank[];
  markers: Marker[];
  matrix: { transfers: Flow[]; nominal: Flow[]; remarks: string[] };
  bandwidth?: Plot; // not there: no curve has two sizes
  verdict: { text: string; stands_out: boolean; culprits: Culprit[] };
  answer: Answer;
  facts: { name: string; text: string; alarm?: boolean }[];
  totals: {
    bars: number;
    operations: number;
    transfers: number;
    events: number;
    hosts: number;
    comms: number;
    collectives: number;
    waited: number;
  };
  problems: string[];
  nodes: number;
  instances: Series;
  metrics: { leaf: number; nodes: number; series: HeadSeries[] };
  path?: Path; // not there: not known
  waits?: TimedSeries & { ends: number[] }; // ends: by block, when the last wait of it and of those before ends; not there: nobody waited
  waiting?: { comm: number; name: string; waits: number; waited: number }[]; // by operation and communicator, those with the most waiting
  charges?: TimedSeries & { kinds: string[] }; // in what ranks were late: "host_late"; not there: no rank caused waiting
  phases?: Phase[]; // in the order of their begins
  blocks?: [number, number, number][];
}

// formatVersion is the format that this page reads.
export const formatVersion = 3;
