# dtc::dtc is the shared library, dtc::static the static one. Everything is relative to this file.
get_filename_component(_dtc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET dtc::dtc)
    add_library(dtc::dtc SHARED IMPORTED)
    set_target_properties(dtc::dtc PROPERTIES
        IMPORTED_LOCATION "${_dtc_prefix}/lib/libdtc.so"
        IMPORTED_SONAME "libdtc.so.0"
        INTERFACE_INCLUDE_DIRECTORIES "${_dtc_prefix}/include")
    add_library(dtc::static STATIC IMPORTED)
    set_target_properties(dtc::static PROPERTIES
        IMPORTED_LOCATION "${_dtc_prefix}/lib/libdtc.a"
        INTERFACE_LINK_LIBRARIES "pthread;m;dl;c"
        INTERFACE_INCLUDE_DIRECTORIES "${_dtc_prefix}/include")
endif()
unset(_dtc_prefix)
