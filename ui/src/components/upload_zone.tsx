// The zone where files are dropped or chosen, and the result for each file.
import {useEffect, useState} from 'preact/hooks';
import {formatBytes, formatCount, printable} from '../model/format.ts';
import {originOf, shortBuildId, sourceOf} from '../model/symbol_words.ts';
import {caller} from '../sign_in.ts';
import {addFiles, clearFinished, isUnderWay, leftOut, sendAgain, uploads, uploadsMax, type Upload} from '../uploads.ts';
import {Icon} from './icons.tsx';

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;

function outcome({state, answer, error}: Upload): string {
  if (state === 'waiting') return 'waiting';
  if (state === 'sending') return 'sending…';
  if (answer) {
    const {source, origin, functions} = answer.symbols;
    const words = `${sourceOf(source).words}, ${formatCount(functions)} functions`;
    const of = `build-id ${shortBuildId(answer.build_id)}`;
    return answer.stored ? `stored: ${words}, ${of}` : `known already: ${words}, from ${originOf(origin)}, ${of}`;
  }
  const {status, message} = error!;
  return `${status >= 400 && status < 500 ? 'refused' : 'not stored'}: ${message}`;
}

function UploadRow({upload}: {upload: Upload}) {
  const {id, file, state, answer} = upload;
  return (
    <li class={state} data-testid="upload">
      <span class={`dot ${{waiting: '', sending: 'sending', done: 'good', failed: 'poor'}[state]}`} />
      <span class="upload-name" title={printable(file.name)}>
        {printable(file.name)}
      </span>
      <span class="upload-size">
        {formatBytes(file.size)}
        {state === 'failed' && (
          <button type="button" class="button" data-testid="upload-again" onClick={() => sendAgain(id)}>
            Send again
          </button>
        )}
      </span>
      <p data-testid="upload-outcome">{printable(outcome(upload))}</p>
      {answer?.remarks.map((remark, i) => (
        <p key={i} class="remark" data-testid="upload-remark">
          <Icon name="warning" />
          {printable(remark)}
        </p>
      ))}
    </li>
  );
}

export function uploadProgress(all: readonly Upload[]): string {
  const left = all.filter(isUnderWay).length;
  return left > 0 ? `sending file ${formatCount(all.length - left + 1)} of ${formatCount(all.length)}` : '';
}

export function UploadZone() {
  const [over, setOver] = useState(false);
  const all = uploads.value;
  // Without this, a file dropped outside the zone would replace the page.
  useEffect(() => {
    const refuse = (event: DragEvent) => {
      if (!holdsFiles(event) || event.defaultPrevented) return;
      event.preventDefault();
      event.dataTransfer!.dropEffect = 'none';
    };
    const abort = new AbortController();
    window.addEventListener('dragover', refuse, {signal: abort.signal});
    window.addEventListener('drop', refuse, {signal: abort.signal});
    return () => abort.abort();
  }, []);
  const onDragOver = (event: DragEvent) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = 'copy';
    setOver(true);
  };
  const onDrop = (event: DragEvent) => {
    setOver(false);
    if (!holdsFiles(event)) return;
    event.preventDefault();
    addFiles([...event.dataTransfer!.files]);
  };
  const onChange = (event: {currentTarget: HTMLInputElement}) => {
    addFiles([...(event.currentTarget.files ?? [])]);
    event.currentTarget.value = ''; // allows the same file to be chosen again
  };
  return (
    <div class="uploads">
      <h2>Send names</h2>
      {caller.value && !caller.value.rights.includes('upload') && (
        <p class="hint" data-testid="upload-right">
          To send files, you need the right “upload”, which you do not have.
        </p>
      )}
      <label
        class={`drop-zone${over ? ' over' : ''}`}
        data-testid="drop-zone"
        onDragOver={onDragOver}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <input type="file" multiple class="visually-hidden" data-testid="upload-files" onChange={onChange} />
        <span>
          Drop executables or debug files here, or <b>choose files</b>
        </span>
        <span class="hint">
          A file is matched by its build-id, not by its name. Earlier samples get names from the file, too.
        </span>
      </label>
      <p class="hint" role="status" data-testid="upload-progress">
        {uploadProgress(all) || (all.length > 0 && 'All files are finished.')}
      </p>
      {leftOut.value > 0 && (
        <p class="banner" data-testid="upload-left-out">
          <Icon name="warning" />
          {`${formatCount(leftOut.value)} files were left out: the limit is ${uploadsMax}. ` +
            'For many files, use “tributary symbols push DIR”.'}
        </p>
      )}
      {all.length > 0 && (
        <>
          <ul data-testid="upload-list">
            {all.map((upload) => (
              <UploadRow key={upload.id} upload={upload} />
            ))}
          </ul>
          {!all.every(isUnderWay) && (
            <button type="button" class="button" data-testid="upload-clear" onClick={clearFinished}>
              Clear finished files
            </button>
          )}
        </>
      )}
    </div>
  );
}
