# Writes OUT, a C file with the bytes of page.css and page.js in FOLDER.
set(text "#include \"report/page_assets.h\"\n")
foreach(kind css js)
  file(READ ${FOLDER}/page.${kind} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND text "\nconst char ftl_page_${kind}[] = {${bytes}};\n")
  string(APPEND text "const size_t ftl_page_${kind}_bytes = sizeof ftl_page_${kind};\n")
endforeach()
file(WRITE ${OUT} "${text}")
