import assert from 'node:assert/strict';
import {test} from 'node:test';
import {shortName} from './short_name.ts';

const same = (name: string): [string, string] => [name, name];

function check(cases: readonly [string, string][]): void {
  for (const [name, short] of cases) assert.equal(shortName(name), short);
}

test('C++ templates', () => {
  check([
    [
      'std::vector<std::pair<int, std::basic_string<char>>, std::allocator<int> >::push_back(std::pair<int, long>&&)',
      'std::vector<…>::push_back(std::pair<…>&&)',
    ],
    ['void foo<int>(int)', 'void foo<…>(int)'],
    ['foo<>()', 'foo<>()'],
    ['std::string[abi:cxx11]<char>()', 'std::string[abi:cxx11]<…>()'],
    ['std::function<void (int)>::operator()(int) const', 'std::function<…>::operator()(int) const'],
    ['(anonymous namespace)::work<int>(char const*)', '(anonymous namespace)::work<…>(char const*)'],
    ['std::array<int, ((sizeof (long))>(4)), (1<<3)>::at(unsigned long)', 'std::array<…>::at(unsigned long)'],
    ['auto f<int>(int) -> decltype(g<int>())', 'auto f<…>(int) -> decltype(g<…>())'],
    ['f<&(g<int>(int))>::h [clone .isra.0]', 'f<…>::h [clone .isra.0]'],
    ['Größe<int>::messen', 'Größe<…>::messen'],
    same('main'),
    same('operator new(unsigned long)'),
  ]);
});

test('operators are not brackets', () => {
  check([
    same('operator<(A const&, A const&)'),
    same('A::operator<=>(A const&) const'),
    same('operator->()'),
    same('A::operator->*(int)'),
    same('operator<<=(A&, int)'),
    same('operator>>(A&, int)'),
    ['bool operator< <int>(A<int> const&)', 'bool operator< <…>(A<…> const&)'],
    ['bool operator<<int>(A<int> const&)', 'bool operator<<…>(A<…> const&)'],
    ['std::operator<< <std::char_traits<char> >(std::ostream&, char const*)', 'std::operator<< <…>(std::ostream&, char const*)'],
    ['operator<=><int>(A<int>)', 'operator<=><…>(A<…>)'],
    ['operator==<char>(A<char>)', 'operator==<…>(A<…>)'],
    ['std::unique_ptr<A>::operator->() const', 'std::unique_ptr<…>::operator->() const'],
    ['sort<&operator< <int> >::run<int>()', 'sort<…>::run<…>()'],
    ['sort<&operator>>::run()', 'sort<…>::run()'],
    ['sort<&A::operator-> >::run()', 'sort<…>::run()'],
    ['A::operator B<int>()', 'A::operator B<…>()'],
    ['A::operator()<int>(int)', 'A::operator()<…>(int)'],
    ['my_operator<int>()', 'my_operator<…>()'],
  ]);
});

test('parts of a name in angle brackets stay, and are shortened inside', () => {
  check([
    same('main()::<lambda(int)>::operator()(int) const'),
    ['main()::<lambda(std::vector<int>)>::_FUN', 'main()::<lambda(std::vector<…>)>::_FUN'],
    ['f()::{lambda(std::vector<int>)#1}::operator()<int>', 'f()::{lambda(std::vector<…>)#1}::operator()<…>'],
    same('<module>'),
    same('Main.<init>'),
    same('outer.<locals>.inner'),
  ]);
});

test('Rust', () => {
  check([
    ['<alloc::vec::Vec<u8> as core::clone::Clone>::clone', '<alloc::vec::Vec<…> as core::clone::Clone>::clone'],
    ['<T as Trait<U>>::f', '<T as Trait<…>>::f'],
    ['<alloc::vec::Vec<T,A>>::push::<u8>', '<alloc::vec::Vec<…>>::push::<…>'],
    ['core::slice::<impl [T]>::sort_by::<Less<T>>', 'core::slice::<impl [T]>::sort_by::<…>'],
    ['core::ptr::drop_in_place<[closure]>', 'core::ptr::drop_in_place<…>'],
    same('work::run::{closure#0}'),
    same('work::run::{{closure}}'),
    ['work::run::{closure#0}::<u8>', 'work::run::{closure#0}::<…>'],
    ['<dyn Fn(i32) -> Vec<u8> as X>::call', '<dyn Fn(i32) -> Vec<…> as X>::call'],
    ['std::thread::Builder::spawn<fn(A) -> B,()>', 'std::thread::Builder::spawn<…>'],
  ]);
});

test('Go', () => {
  check([
    ['main.Map[...]', 'main.Map[…]'],
    ['main.Map[go.shape.int,go.shape.string]', 'main.Map[…]'],
    ['main.(*List[go.shape.struct { X map[string]int }]).Push', 'main.(*List[…]).Push'],
    ['github.com/a/b.Sort[chan<- int].func1', 'github.com/a/b.Sort[…].func1'],
    ['slices.partitionCmpFunc[go.shape.*uint8]', 'slices.partitionCmpFunc[…]'],
    same('main.Map[int'),
    same('main.Map]int[x'),
    same('foo(char const[10])'),
    same('[unknown]'),
  ]);
});

test('other names stay unchanged', () => {
  check([
    same('lib<x>.so+0x1f84a0'),
    same('a<b'),
    same('a>b'),
    same('a<b)>c'),
    same('operator<<<'),
    same('<'),
    same(''),
    same(`${'operator<<'.repeat(200)}<`),
    same(`${'<'.repeat(20_000)}${'>'.repeat(20_000)}`),
  ]);
});

test('very long names take less than half a second', () => {
  const deep = `a${'<a'.repeat(20_000)}${'>'.repeat(20_000)}`;
  const wide = 'a<b>::'.repeat(20_000);
  const before = performance.now();
  assert.equal(shortName(deep), 'a<…>');
  assert.equal(shortName(wide), 'a<…>::'.repeat(20_000));
  shortName('<'.repeat(20_000));
  shortName(`${'<a'.repeat(20_000)}`);
  assert.ok(performance.now() - before < 500);
});
