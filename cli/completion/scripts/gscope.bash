# Completion of gscope for bash 4.4 or later; printed by `gscope completion bash`.
# gscope prints a candidate a line: its kind, a tab, the text, a tab, a description.
_gscope() {
    local current=${COMP_WORDS[COMP_CWORD]} kind value description files=
    [[ $current == [=:] ]] && current=
    COMPREPLY=()
    while IFS=$'\t' read -r kind value description; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            open) COMPREPLY+=("$value"); compopt -o nospace ;;
            file) files=-f; compopt -o filenames ;;
            dir) files=-d; compopt -o filenames ;;
        esac
    done < <(_GSCOPE_COMPLETE=bash_complete COMP_COMMAND=$1 COMP_TYPE=$COMP_TYPE \
        COMP_LINE=${COMP_LINE:0:COMP_POINT} COMP_BREAKS=$COMP_WORDBREAKS "${1/#\~/$HOME}" 2>/dev/null)
    if [[ -n $files ]]; then
        while IFS= read -r value; do
            COMPREPLY+=("$value")
        done < <(compgen "$files" -- "$current")
    fi
}
complete -o nosort -F _gscope gscope
