# Completion of odd-program for bash; made by --print-docs bash.
_odd_program_completion() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= words= files= i
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --cert | --dir | --export | --format | --level | --token | -l)
        [[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))
        ((i++)) ;;
      --)
        command+=${command:+ }--
        break ;;
      *)
        case ${command:+$command }${COMP_WORDS[i]} in
          'files' | 'files push' | 'run') command+=${command:+ }${COMP_WORDS[i]} ;;
        esac ;;
    esac
  done
  case ${command:+$command }$before in
    '--level' | '-l')
      mapfile -t COMPREPLY < <(compgen -W 'low high' -- "$word")
      return ;;
    '--cert')
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return ;;
    '--dir')
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      return ;;
    '--export')
      return ;;
    '--token')
      return ;;
    'run --format')
      mapfile -t COMPREPLY < <(compgen -W 'svg html' -- "$word")
      return ;;
  esac
  case $command in
    '') words='files run --level -l --cert --dir --live --no-live --export --token --help' ;;
    'files') words='push --json' ;;
    'files push') words='' files=1 ;;
    'run') words='--format' ;;
    'run --') mapfile -t COMPREPLY < <(compgen -c -f -- "$word") ;;
  esac
  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ -n $files && $word != -* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _odd_program_completion odd-program
