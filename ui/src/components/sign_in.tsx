// Covers the page until the user has signed in.
import {useEffect, useRef, useState} from 'preact/hooks';
import {refusal} from '../api/session.ts';
import {printable} from '../model/format.ts';
import {signIn, wantsToSignIn} from '../sign_in.ts';
import {Icon} from './icons.tsx';

export function SignIn() {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    const found = await signIn(text);
    setBusy(false);
    setProblem(found);
    if (found !== '') field.current?.select();
  };
  const reason = refusal.value;
  return (
    <main class="sign-in" data-testid="sign-in">
      <form class="sign-in-card" onSubmit={(event) => void submit(event)}>
        <h1>Sign in</h1>
        <p>
          {reason === null
            ? 'With a token, you may have rights that you do not have now.'
            : 'This reducer answers only users who have signed in.'}
        </p>
        {reason !== null && (
          <p class="muted small" data-testid="sign-in-reason">
            {`The reducer says: ${printable(reason)}`}
          </p>
        )}
        <label for="token">Token</label>
        <input
          id="token"
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={text}
          aria-invalid={problem !== ''}
          aria-describedby="token-problem"
          data-testid="token"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <p id="token-problem" class="field-error" role="alert" data-testid="token-problem">
          {problem !== '' && (
            <>
              <Icon name="warning" />
              <span>{printable(problem)}</span>
            </>
          )}
        </p>
        <div class="sign-in-actions">
          <button type="submit" class="button primary" disabled={busy} data-testid="submit-token">
            {busy ? 'Signing in…' : 'Sign in'}
          </button>
          {reason === null && (
            <button type="button" class="button" onClick={() => (wantsToSignIn.value = false)}>
              Cancel
            </button>
          )}
        </div>
        <section class="sign-in-help">
          <h2>What is a token?</h2>
          <p>
            A secret text that stands for you and your rights, like a password without a user name. The operator of this
            reducer keeps all tokens in the file of the option <code>--http-token-file</code>, and can give you one.
          </p>
          <p>This tab keeps the token until you close the tab or sign out. Other tabs do not have it.</p>
        </section>
      </form>
    </main>
  );
}
