// Who has signed in, and the buttons to sign in and out. Nobody needs them if everybody may do everything.
import {describeCaller} from '../model/sign_in.ts';
import {printable} from '../model/format.ts';
import {caller, signOut, wantsToSignIn} from '../sign_in.ts';

export function Account() {
  const who = caller.value;
  if (!who) return null;
  if (who.signed_in_by === 'none') {
    if (who.rights.includes('admin')) return null;
    return (
      <button type="button" class="button" data-testid="open-sign-in" onClick={() => (wantsToSignIn.value = true)}>
        Sign in
      </button>
    );
  }
  return (
    <div class="account">
      <span class="account-name" title={describeCaller(who)} data-testid="account">
        <span class="visually-hidden">Signed in as </span>
        {printable(who.name) || 'no name'}
      </span>
      {who.signed_in_by === 'token' && (
        <button type="button" class="button" data-testid="sign-out" onClick={signOut}>
          Sign out
        </button>
      )}
    </div>
  );
}
