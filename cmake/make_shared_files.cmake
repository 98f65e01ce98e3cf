# Run by `cmake --install`: writes into TROUPE_MADE what TROUPE_PROGRAM says of itself. Manual pages are compressed where there is gzip, as
# Debian wants them.
cmake_policy(VERSION 3.25)
file(REMOVE_RECURSE ${TROUPE_MADE})
set(files
  bash bash-completion/completions/troupe
  fish fish/vendor_completions.d/troupe.fish
  zsh zsh/vendor-completions/_troupe)
while(files)
  list(POP_FRONT files shell file)
  get_filename_component(folder ${TROUPE_MADE}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${TROUPE_PROGRAM} completion ${shell} OUTPUT_FILE ${TROUPE_MADE}/${file} COMMAND_ERROR_IS_FATAL ANY)
endwhile()
execute_process(COMMAND ${TROUPE_PROGRAM} man --all ${TROUPE_MADE}/man COMMAND_ERROR_IS_FATAL ANY)
find_program(GZIP gzip)
if(GZIP)
  file(GLOB pages ${TROUPE_MADE}/man/man*/*)
  execute_process(COMMAND ${GZIP} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
