// Line icons, 16 by 16, in the colour of the text around them. Decoration only: the buttons around them have the text.
const paths = {
  clock: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 5v3.2l2.2 1.4',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.5 10.5 14 14',
  close: 'm4 4 8 8M12 4l-8 8',
  chevron: 'm4.5 6.5 3.5 3.5 3.5-3.5',
  zoomOut: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.5 10.5 14 14M5 7h4',
  sun:
    'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1' +
    'M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7',
  moon: 'M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z',
  system: 'M2.5 3h11v7.5h-11ZM6 13.5h4M8 10.5v3',
  back: 'M13 8H3M7 4 3 8l4 4',
  lines: 'M2.5 4h2M2.5 8h2M2.5 12h2M7 4h6.5M7 8h4.5M7 12h6.5',
  up: 'M8 12.5v-9M4.5 7 8 3.5 11.5 7',
  down: 'M8 3.5v9M4.5 9 8 12.5 11.5 9',
  warning: 'M8 2.5 14.5 13.5h-13ZM8 6.5v3M8 11.3v.4',
} as const;

export type IconName = keyof typeof paths;

export function Icon({name}: {name: IconName}) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={paths[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path
        d="M16 27V17M16 18C16 12 8.5 13 8.5 6M16 18C16 12 23.5 13 23.5 6M16 12V6"
        fill="none"
        stroke-width="3"
        stroke-linecap="round"
      />
    </svg>
  );
}
