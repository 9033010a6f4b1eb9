# find_package(rxo) defines rxo::rxo and rxo::rxo-trace, and rxo::rxo-static and rxo::rxo-trace-static, which are
# in the program and need no file later. A program links to one of them.
get_filename_component(_rxo_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_rxo rxo rxo-trace)
    if(NOT TARGET rxo::${_rxo})
        add_library(rxo::${_rxo} SHARED IMPORTED)
        set_target_properties(rxo::${_rxo} PROPERTIES
            IMPORTED_LOCATION "${_rxo_prefix}/lib/lib${_rxo}.so.1"
            IMPORTED_SONAME "lib${_rxo}.so.1"
            INTERFACE_INCLUDE_DIRECTORIES "${_rxo_prefix}/include")
        add_library(rxo::${_rxo}-static STATIC IMPORTED)
        set_target_properties(rxo::${_rxo}-static PROPERTIES
            IMPORTED_LOCATION "${_rxo_prefix}/lib/lib${_rxo}.a"
            INTERFACE_INCLUDE_DIRECTORIES "${_rxo_prefix}/include"
            INTERFACE_LINK_LIBRARIES "gcc_s;pthread;m;dl")
    endif()
endforeach()
unset(_rxo)
unset(_rxo_prefix)
