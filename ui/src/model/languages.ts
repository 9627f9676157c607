// The languages of code, as the reducer names them.
import {printable} from './format.ts';

const titles: Readonly<Record<string, string>> = {
  python: 'Python',
  go: 'Go',
  jit: 'JIT-compiled',
  native: 'Native',
  kernel: 'Kernel',
  unknown: 'Unknown',
};

export function languageName(language: string): string {
  return titles[language] ?? printable(language);
}

// Adds the language to a list that is separated by commas, or removes it.
export function toggleLanguage(list: string, language: string): string {
  const chosen = list === '' ? [] : list.split(',');
  return (chosen.includes(language) ? chosen.filter((other) => other !== language) : [...chosen, language]).join(',');
}
