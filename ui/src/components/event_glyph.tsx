// The signs of crash, OOM kill and restart. They differ in shape and colour, so that either is enough.
import type {EventMarkKind} from '../model/event_marks.ts';

const paths: Record<EventMarkKind, string> = {
  crash: 'm1.8 1.8 5.4 5.4M7.2 1.8 1.8 7.2',
  oom: 'M1.5 1.5h6v6h-6Z',
  restart: 'M4.5 1.2a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6Z',
};

// Decoration only: the elements around it have the text.
export function EventGlyph({kind}: {kind: EventMarkKind}) {
  return (
    <svg class={`event-glyph ${kind}`} viewBox="0 0 9 9" width="9" height="9" aria-hidden="true" data-kind={kind}>
      <path d={paths[kind]} />
    </svg>
  );
}
