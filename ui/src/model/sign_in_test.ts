import assert from 'node:assert/strict';
import {test} from 'node:test';
import {describeCaller, tokenProblem} from './sign_in.ts';

test('what cannot be a token is refused before it is sent', () => {
  assert.equal(tokenProblem('0123456789abcdef'), '');
  assert.equal(tokenProblem('~!0123456789abcd'), '');
  assert.equal(tokenProblem('a'.repeat(4096)), '');
  assert.match(tokenProblem('a'.repeat(4097)), /at most 4096/);
  assert.match(tokenProblem(''), /at least 16/);
  assert.match(tokenProblem('0123456789abcde'), /at least 16/);
  assert.match(tokenProblem('0123456789abcdef read ann'), /first word/);
  assert.match(tokenProblem('0123456789abcdef\nX: y'), /no spaces/);
  for (const letter of ['\u0000', '\u0007', '\u007f', 'é', '😀']) {
    assert.match(tokenProblem(`0123456789abcdef${letter}`), /ASCII/);
  }
});

test('a caller is described by the way to sign in, and by the rights', () => {
  const caller = (rights: string[]) => ({name: 'ann', signed_in_by: 'token', rights});
  assert.equal(describeCaller(caller(['read', 'upload'])), 'Signed in by a token. Rights: read, upload.');
  assert.equal(describeCaller(caller([])), 'Signed in by a token. Rights: none.');
});
