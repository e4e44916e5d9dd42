#compdef gscope
# Completion of gscope for zsh; printed by `gscope completion zsh`.
# gscope prints a candidate a line: its kind, a tab, the text, a tab, a description.
_gscope() {
    local line kind value description
    local -a fields values shown open_values open_shown
    local -i found=1
    local before="${(j: :)words[1,CURRENT-1]} ${words[CURRENT]}"
    for line in "${(@f)$(_GSCOPE_COMPLETE=zsh_complete COMP_COMMAND=${words[1]} \
        COMP_LINE=$before ${~words[1]} 2>/dev/null)}"; do
        fields=("${(@s:	:)line}")
        kind=$fields[1] value=$fields[2] description=$fields[3]
        [[ -n $description ]] && description="  -- $description"
        case $kind in
            plain) values+=("$value"); shown+=("${${:-$value$description}[1,COLUMNS-1]}") ;;
            open) open_values+=("$value"); open_shown+=("${${:-$value$description}[1,COLUMNS-1]}") ;;
            file) compset -P "${(b)value}"; _files && found=0 ;;
            dir) compset -P "${(b)value}"; _files -/ && found=0 ;;
        esac
    done
    (( $#values )) && compadd -U -V gscope -l -d shown -a values && found=0
    (( $#open_values )) && compadd -U -S '' -V gscope -l -d open_shown -a open_values && found=0
    return found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gscope "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _gscope gscope
fi
