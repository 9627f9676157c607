// The kinds of frames that the API tells apart, by number.
export const Kind = {root: 0, native: 1, kernel: 2, inlined: 3, unknown: 4} as const;
export const kindNames = ['everything', 'native', 'kernel', 'inlined', 'unknown'] as const;
