# Run by cpack over what it is about to pack (one folder per component): Debian's policy wants a
# copyright file that names the licence, and manuals and changelogs compressed.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_DIRECTORY}/runtime/usr/share)
set(doc ${root}/doc/vcpulse)
file(REMOVE ${doc}/LICENSE)
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
file(COPY ${CPACK_VCPULSE_DEBIAN_FILES}/copyright ${CPACK_VCPULSE_DEBIAN_FILES}/README.Debian
  DESTINATION ${doc})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog.Debian
  "vcpulse (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
  "  * changelog.gz has what changed.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
file(GLOB pages ${root}/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${pages} ${doc}/changelog ${doc}/changelog.Debian
  COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${CPACK_TEMPORARY_DIRECTORY}/development)
  file(COPY ${CPACK_VCPULSE_DEBIAN_FILES}/copyright ${doc}/changelog.Debian.gz
    DESTINATION ${CPACK_TEMPORARY_DIRECTORY}/development/usr/share/doc/libvcpulse-dev)
endif()
