// A button that opens a panel below itself. Escape, a click elsewhere, or leaving the panel with Tab closes it.
import {useEffect, useRef, useState} from 'preact/hooks';
import type {ComponentChildren} from 'preact';

export interface PopoverProps {
  label: ComponentChildren;
  name: string; // for assistive technology and data-testid
  kind?: string; // class of the button
  align?: 'left' | 'right';
  title?: string | undefined;
  testId?: string; // of the button, if it does not follow from the name
  tabIndex?: number; // of the button
  children: (close: () => void) => ComponentChildren;
}

export function Popover({label, name, kind = 'button', align = 'left', children, ...more}: PopoverProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const abort = new AbortController();
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', outside, {signal: abort.signal});
    document.addEventListener('focusin', outside, {signal: abort.signal});
    return () => abort.abort();
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !open) return;
    event.stopPropagation();
    close();
  };
  return (
    <div class="popover" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        ref={button}
        class={kind}
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label={name}
        title={open ? undefined : more.title}
        tabIndex={more.tabIndex}
        data-testid={more.testId ?? `open-${name.toLowerCase().replaceAll(' ', '-')}`}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <div class={`panel panel-${align}`} role="dialog" aria-label={name}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
