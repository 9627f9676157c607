// A choice of one value from a few, all of them visible.
interface ChoiceProps<T extends string> {
  name: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  choose: (value: T) => void;
  title?: string;
}

export function Segmented<T extends string>({name, value, choices, choose, title}: ChoiceProps<T>) {
  return (
    <div class="segmented" role="group" aria-label={name} title={title}>
      {choices.map(([key, label]) => (
        <button
          key={key}
          type="button"
          aria-pressed={value === key}
          data-testid={`${name.toLowerCase()}-${key}`}
          onClick={() => choose(key)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
