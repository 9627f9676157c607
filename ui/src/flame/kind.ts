// The kinds of frames that answers distinguish. A kind is an index into the answer's list.
export interface FrameKind {
  name: string;
  // 'file': each executable has its own colour; or one of 'kernel', 'inlined', 'python', 'jit', 'root' and 'unknown'
  color: string;
  language?: string; // of its code, for the filter; missing: in results only, or the answer of an earlier release
}

// The first five kinds of every list, and the whole list if an answer has none.
export const knownKinds: readonly FrameKind[] = [
  {name: 'everything', color: 'root'},
  {name: 'native', color: 'file'},
  {name: 'kernel', color: 'kernel'},
  {name: 'inlined', color: 'inlined'},
  {name: 'unknown', color: 'unknown'},
];
export const unknownKind = knownKinds[4]!;

export function toKinds(kinds: readonly FrameKind[] | undefined): readonly FrameKind[] {
  return kinds ? kinds.map((kind, i) => (i === 0 ? knownKinds[0]! : kind)) : knownKinds;
}
