// Who the user is, and the sign-in view. The view covers the page if the API answers 401, or if the user asks for it.
import {computed, signal} from '@preact/signals';
import {ApiError, getWhoami, tryToken} from './api/client.ts';
import {refusal, setToken} from './api/session.ts';
import type {WhoamiAnswer} from './api/types.ts';
import {tokenProblem} from './model/sign_in.ts';
import {refresh} from './state.ts';
import {resumeUploads} from './uploads.ts';

export const caller = signal<WhoamiAnswer | null>(null); // null: not known, or a reducer of an earlier release
export const wantsToSignIn = signal(false);
export const signInShown = computed(() => refusal.value !== null || wantsToSignIn.value);

export async function loadCaller(): Promise<void> {
  try {
    caller.value = await getWhoami();
  } catch {
    caller.value = null; // if the API refuses this tab, `refusal` says so
  }
}

// Returns '', or why the text is not accepted.
export async function signIn(text: string): Promise<string> {
  const token = text.trim();
  const problem = tokenProblem(token);
  if (problem !== '') return problem;
  let answer: WhoamiAnswer;
  try {
    answer = await tryToken(token);
  } catch (error) {
    if (!(error instanceof ApiError)) return String(error);
    if (error.status !== 401) return error.message;
    return `The reducer refused this token: ${error.message}. Check that you have copied all of it.`;
  }
  if (answer.signed_in_by !== 'token') return 'This reducer uses no tokens: it was started without --http-token-file.';
  setToken(token);
  caller.value = answer;
  wantsToSignIn.value = false;
  refusal.value = null;
  void refresh();
  resumeUploads();
  return '';
}

// The reload also forgets the data that the token has given access to.
export function signOut(): void {
  setToken('');
  location.reload();
}
