// Where the names in the samples come from: one line. A button opens the list of executables, the problems with their
// names, and a place to send better names.
import type {SymbolNotice} from '../api/types.ts';
import {formatClock, formatCount, formatDate, printable} from '../model/format.ts';
import {shortBuildId, summaryOf} from '../model/symbol_words.ts';
import {refresh, setView, symbols, view} from '../state.ts';
import {uploads} from '../uploads.ts';
import {ExecutableTable} from './executable_table.tsx';
import {Icon} from './icons.tsx';
import {UploadZone, uploadProgress} from './upload_zone.tsx';

const noticesMax = 50;

function Notice({notice}: {notice: SymbolNotice}) {
  const id = printable(notice.build_id);
  return (
    <li data-testid="symbol-notice">
      <time dateTime={new Date(notice.at).toISOString()} title={formatDate(notice.at)}>
        {formatClock(notice.at)}
      </time>
      <p>
        {printable(notice.text)}
        {id && (
          <>
            {' '}
            <code title={`build-id ${id}`}>{shortBuildId(id)}</code>
          </>
        )}
        {notice.times > 1 && <span class="muted">{` ${formatCount(notice.times)} times`}</span>}
      </p>
    </li>
  );
}

function Notices({notices}: {notices: SymbolNotice[]}) {
  return (
    <div class="notices">
      <h2>Problems with names</h2>
      {notices.length === 0 ? (
        <p class="hint">No recent problems.</p>
      ) : (
        <ul data-testid="symbol-notices">
          {notices.slice(0, noticesMax).map((notice) => (
            <Notice key={`${notice.build_id} ${notice.text}`} notice={notice} />
          ))}
        </ul>
      )}
      {notices.length > noticesMax && (
        <p class="hint">{`${formatCount(notices.length - noticesMax)} older problems are not listed.`}</p>
      )}
    </div>
  );
}

function Line() {
  const {value: answer, error} = symbols.value;
  if (!answer) {
    return error ? (
      <p class="readout" role="alert" data-testid="executables-line">
        {printable(error.message)}
      </p>
    ) : (
      <p class="readout" role="status" data-testid="executables-line">
        Loading…
      </p>
    );
  }
  const {count, unnamed} = summaryOf(answer);
  const parts = [unnamed ? `${count} · ${unnamed.text} of sampled addresses have no name` : 'none in this selection'];
  if (answer.notices.length > 0) {
    parts.push(answer.notices.length === 1 ? '1 problem' : `${formatCount(answer.notices.length)} problems`);
  }
  const sending = uploadProgress(uploads.value);
  if (sending) parts.push(sending);
  return (
    <p class="executables-line" data-testid="executables-line">
      <span class={`dot ${unnamed?.level ?? ''}`} />
      <span>{parts.join(' · ')}</span>
    </p>
  );
}

function Body() {
  const {value: answer, error} = symbols.value;
  return (
    <div class="executables-body" data-testid="executables-body">
      {answer && error && (
        <p class="banner" role="alert" data-testid="executables-stale">
          <Icon name="warning" />
          {`${printable(error.message)} (The data shown is older.)`}
        </p>
      )}
      {answer && <ExecutableTable answer={answer} />}
      <div class="executables-below">
        <UploadZone />
        {answer && <Notices notices={answer.notices} />}
      </div>
    </div>
  );
}

export function Executables() {
  const open = view.value.executables === 'open';
  const toggle = () => {
    setView({executables: open ? 'closed' : 'open'});
    if (!open) void refresh();
  };
  return (
    <section class="card executables" aria-label="Executables" data-testid="executables">
      <div class="card-head">
        <h1>Executables</h1>
        <Line />
        <span class="spring" />
        <button type="button" class="button" aria-expanded={open} data-testid="executables-details" onClick={toggle}>
          {open ? 'Hide' : 'Show'}
          <Icon name="chevron" />
        </button>
      </div>
      {open && <Body />}
    </section>
  );
}
