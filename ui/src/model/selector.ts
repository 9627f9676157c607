// The selector language of the API, `{name="value", other=~"regex"}`, as far as the filters need it. A filter reads and
// replaces the matchers on its own labels, and keeps the others as the user wrote them. The server decides whether a
// selector is valid.

export type Operator = '=' | '!=' | '=~' | '!~';

export interface Matcher {
  label: string; // with `_` instead of `.`
  operator: Operator;
  value: string;
}

export type ParsedSelector = {matchers: Matcher[]} | {error: string};

const escapes: Record<string, string> = {n: '\n', t: '\t', r: '\r', '"': '"', '\\': '\\'};

export function parseSelector(text: string): ParsedSelector {
  const matchers: Matcher[] = [];
  let position = 0;
  const skipSpace = () => {
    while (/\s/.test(text[position] ?? '')) ++position;
  };
  const fail = (expected: string): ParsedSelector => ({
    error:
      position >= text.length
        ? `The selector ends where ${expected} should be`
        : `At character ${position + 1}: ${expected} should be here`,
  });

  skipSpace();
  if (position === text.length) return {matchers};
  if (text[position] !== '{') return fail('“{”');
  ++position;
  for (;;) {
    skipSpace();
    if (text[position] === '}') break;
    const label = /^[A-Za-z_][A-Za-z0-9_.]*/.exec(text.slice(position))?.[0];
    if (!label) return fail('a label name, such as process_executable_name,');
    position += label.length;
    skipSpace();
    const operator = /^(=~|!~|!=|=)/.exec(text.slice(position))?.[0] as Operator | undefined;
    if (!operator) return fail('one of = != =~ !~');
    position += operator.length;
    skipSpace();
    if (text[position] !== '"') return fail('a value in double quotes');
    ++position;
    let value = '';
    for (; text[position] !== '"'; ++position) {
      const character = text[position];
      if (character === undefined) return fail('the closing quote');
      if (character === '\\') {
        ++position;
        const escaped = text[position];
        if (escaped === undefined) return fail('an escaped character');
        // An unknown escape stays as written, such as `\d` in a regular expression.
        value += escapes[escaped] ?? `\\${escaped}`;
      } else {
        value += character;
      }
    }
    ++position;
    matchers.push({label: label.replaceAll('.', '_'), operator, value});
    skipSpace();
    if (text[position] === ',') {
      ++position;
    } else if (text[position] !== '}') {
      return fail('“,” or “}”');
    }
  }
  ++position;
  skipSpace();
  if (position < text.length) return fail('the end of the selector');
  return {matchers};
}

export function quote(value: string): string {
  const escaped = value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  return `"${escaped}"`;
}

export function formatSelector(matchers: readonly Matcher[]): string {
  if (matchers.length === 0) return '';
  return `{${matchers.map((m) => `${m.label}${m.operator}${quote(m.value)}`).join(', ')}}`;
}

// Returns `matchers` with `replacement` in place of all matchers on `labels`: where the first one was, else at the end.
export function replaceMatchers(
  matchers: readonly Matcher[],
  labels: readonly string[],
  replacement: readonly Matcher[],
): Matcher[] {
  const first = matchers.findIndex((m) => labels.includes(m.label));
  const kept = matchers.filter((m) => !labels.includes(m.label));
  const at = first < 0 ? kept.length : matchers.slice(0, first).filter((m) => !labels.includes(m.label)).length;
  return [...kept.slice(0, at), ...replacement, ...kept.slice(at)];
}
