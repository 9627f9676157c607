// Leaves the arguments of templates and of Rust's and Go's generics out of names: `std::vector<int>::push_back` becomes
// `std::vector<…>::push_back`. Text that only looks like arguments stays: operators, `<lambda(int)>`, the type of
// `<T as Trait>::f`. A name whose brackets do not match stays unchanged.

const arguments_ = '<…>';
const typeParameters = '[…]';
const addressName = /\+0x[0-9a-f]+$/; // file+0x…: the name of the file may contain brackets

// Longest first: `operator<<` before `operator<`. `operator<<int>` can mean either. The first reading with matching
// brackets is used.
const operators =
  '<=> <<= >>= ->* << >> <= >= -> += -= *= /= %= ^= &= |= == != && || ++ -- () [] < > + - * / % ^ & | ~ ! = ,'.split(' ');
// Limits of one name: readings of its operators, depth of brackets that stay. A name beyond a limit stays unchanged.
const readingsMax = 64;
const depthMax = 16;

const isWord = (character: string | undefined): boolean => character !== undefined && /[\p{L}\p{N}_$]/u.test(character);

// Returns the end position of each operator that may begin at `at` with the word `operator`.
function operatorEnds(text: string, at: number): number[] {
  const word = 'operator';
  if (text[at] !== 'o' || !text.startsWith(word, at) || isWord(text[at - 1])) return [];
  const after = at + word.length;
  return operators.filter((operator) => text.startsWith(operator, after)).map((operator) => after + operator.length);
}

const opening: Record<string, string> = {')': '(', ']': '[', '}': '{'};

class Reader {
  private readings = 0;
  private depth = 0;

  // Returns null if the brackets do not match, or the name is beyond a limit.
  shorten(text: string, afterOperator = false): string | null {
    let short = '';
    for (let at = 0; at < text.length; ) {
      const ends = operatorEnds(text, at);
      if (ends.length > 0) return this.firstReading(ends, (end) => this.joined(short + text.slice(at, end), text.slice(end)));
      const character = text[at]!;
      if (character === '>' && text[at - 1] !== '-') return null;
      if (character !== '<') {
        short += character;
        ++at;
        continue;
      }
      const end = this.closing(text, at + 1, ['<']);
      if (end === null) return null;
      const inside = text.slice(at + 1, end);
      const follows = afterOperator && text.slice(0, at).trim() === '';
      const shown = follows || isArguments(text, at, inside) ? inside && arguments_ : this.kept(inside);
      if (shown === null) return null;
      short += shown || '<>';
      at = end + 1;
    }
    return short;
  }

  private kept(inside: string): string | null {
    if (++this.depth > depthMax) return null;
    const short = this.shorten(inside);
    --this.depth;
    return short === null ? null : `<${short}>`;
  }

  private joined(begin: string, rest: string): string | null {
    const short = this.shorten(rest, true);
    return short === null ? null : begin + short;
  }

  private firstReading<T>(ends: readonly number[], read: (end: number) => T | null): T | null {
    for (const end of ends) {
      if (++this.readings > readingsMax) return null;
      const found = read(end);
      if (found !== null) return found;
    }
    return null;
  }

  // Returns the position of the `>` that closes `outer`, or null. Within round brackets, `<` and `>` may be
  // comparisons, so they need no partner there.
  private closing(text: string, from: number, outer: readonly string[]): number | null {
    const open = [...outer];
    for (let at = from; at < text.length; ++at) {
      const ends = operatorEnds(text, at);
      if (ends.length > 0) return this.firstReading(ends, (end) => this.closing(text, end, open));
      const character = text[at]!;
      if (character === '<' || character === '(' || character === '[' || character === '{') {
        open.push(character);
      } else if (character === '>') {
        if (text[at - 1] === '-' || open.at(-1) !== '<') continue;
        open.pop();
        if (open.length === 0) return at;
      } else if (character in opening) {
        const partner = open.lastIndexOf(opening[character]!);
        if (partner < 0) return null;
        open.length = partner;
      }
    }
    return null;
  }
}

// Returns whether the `<` at `at` begins arguments of the name before it.
function isArguments(text: string, at: number, inside: string): boolean {
  const before = text[at - 1];
  if (isWord(before) || before === ']' || before === '}') return true;
  // `iter::sum::<u32>` has arguments. In `main::<lambda(int)>`, `slice::<impl [T]>` and `x::<T as Trait>`, the brackets
  // are part of a name.
  return at > 2 && before === ':' && !/^(lambda|unnamed|anonymous|impl )| as /.test(inside);
}

// Shortens names such as `main.Map[int,string]` and `main.(*List[go.shape.int]).Push`. Returns null if `name` is not a
// name of Go's generics.
function shortenGo(name: string): string | null {
  const first = name.search(/[\p{L}\p{N}_]\[/u);
  const before = name.slice(0, first + 1);
  if (first < 0 || !before.includes('.') || /::|[<\s]/.test(before)) return null;
  let short = '';
  let open = 0;
  for (let at = 0; at < name.length; ++at) {
    const character = name[at]!;
    if (character === ']' && --open < 0) return null;
    if (open === 0 && character !== '[') short += character === ']' ? typeParameters : character;
    if (character === '[') ++open;
  }
  return open === 0 ? short : null;
}

export function shortName(name: string): string {
  if (addressName.test(name)) return name;
  return shortenGo(name) ?? (name.includes('<') ? (new Reader().shorten(name) ?? name) : name);
}
