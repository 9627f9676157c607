// Tokens and rights, in words.
import type {WhoamiAnswer} from '../api/types.ts';

export const tokenLettersMin = 16;
export const tokenLettersMax = 4096;

// Returns why the text cannot be a token, or ''. The browser would refuse to send other letters.
export function tokenProblem(text: string): string {
  if (/\s/.test(text)) return 'A token has no spaces. In a file of tokens, it is the first word of a line.';
  if (!/^[!-~]*$/.test(text)) return 'A token has only letters, digits and punctuation of ASCII.';
  if (text.length < tokenLettersMin)
    return `This is not a whole token: a token has at least ${tokenLettersMin} letters.`;
  return text.length > tokenLettersMax ? `A token has at most ${tokenLettersMax} letters.` : '';
}

const ways: Record<string, string> = {token: 'a token', certificate: 'a certificate', proxy: 'a proxy'};

// “Signed in by a token. Rights: read, upload.”
export function describeCaller({signed_in_by, rights}: WhoamiAnswer): string {
  return `Signed in by ${ways[signed_in_by] ?? signed_in_by}. Rights: ${rights.join(', ') || 'none'}.`;
}
