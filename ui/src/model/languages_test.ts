import assert from 'node:assert/strict';
import {test} from 'node:test';
import {languageName, toggleLanguage} from './languages.ts';

test('languages are added to a list and removed from it', () => {
  assert.equal(toggleLanguage('', 'python'), 'python');
  assert.equal(toggleLanguage('python', 'go'), 'python,go');
  assert.equal(toggleLanguage('python,go', 'python'), 'go');
  assert.equal(toggleLanguage('go', 'go'), '');
});

test('a language of a later reducer keeps its name', () => {
  assert.equal(languageName('python'), 'Python');
  assert.equal(languageName('ruby'), 'ruby');
});
