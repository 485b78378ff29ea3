# The libraries that hosts link, made from the object libraries of engine/, and what `cmake --install` lays down.
#
# vkattn_shared: hidden symbols, only VKA_API is exported. vkattn_static: one relocated object whose hidden symbols are
# made local. A plain archive would put every internal name in the host's namespace, where a second version of this
# library, or anything else of that name, collides with it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(VKA_LAYER_TARGETS GLOBAL PROPERTY VKA_LAYERS)
set(VKA_OBJECTS "")
foreach(layer ${VKA_LAYER_TARGETS})
  list(APPEND VKA_OBJECTS $<TARGET_OBJECTS:${layer}>)
endforeach()

set(VKA_PUBLIC_HEADERS
    attention.h
    buffer.h
    cache.h
    context.h
    exchange.h
    export.h
    forward.h
    layer.h
    layer_desc.h
    layout.h
    model.h
    peak.h
    projection.h
    status.h
    tensor.h
    tune.h
    version.h
    vkattn.h)
list(TRANSFORM VKA_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/vkattn/)

if(PROJECT_VERSION_MAJOR GREATER 0)
  set(VKA_SOVERSION ${PROJECT_VERSION_MAJOR})
else()
  set(VKA_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

add_library(vkattn_shared SHARED ${VKA_OBJECTS})
add_library(vkattn::vkattn ALIAS vkattn_shared)
target_link_libraries(vkattn_shared PRIVATE vka_options PkgConfig::JANSSON Threads::Threads m ${CMAKE_DL_LIBS})
set_target_properties(vkattn_shared PROPERTIES
                      OUTPUT_NAME vkattn
                      EXPORT_NAME vkattn
                      LINKER_LANGUAGE C
                      VERSION ${PROJECT_VERSION}
                      SOVERSION ${VKA_SOVERSION})
if(NOT VKA_SANITIZE AND NOT VKA_FUZZ)
  # Sanitizer runtimes may live in the executable only.
  target_link_options(vkattn_shared PRIVATE -Wl,--no-undefined)
endif()

set(VKA_RELOCATED ${PROJECT_BINARY_DIR}/vkattn.o)
add_custom_command(OUTPUT ${VKA_RELOCATED}
                   COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${VKA_RELOCATED} ${VKA_OBJECTS}
                   COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${VKA_RELOCATED}
                   DEPENDS ${VKA_OBJECTS}
                   COMMAND_EXPAND_LISTS VERBATIM
                   COMMENT "Relocating the library into one object")
add_library(vkattn_static STATIC ${VKA_RELOCATED})
add_library(vkattn::vkattn_static ALIAS vkattn_static)
set_source_files_properties(${VKA_RELOCATED} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
# Plain names: a host that links the archive needs no package files of ours or of jansson.
target_link_libraries(vkattn_static INTERFACE jansson m ${CMAKE_DL_LIBS} pthread)
set_target_properties(vkattn_static PROPERTIES OUTPUT_NAME vkattn LINKER_LANGUAGE C)

foreach(library vkattn_shared vkattn_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

set(VKA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vkattn)
install(TARGETS vkattn_shared vkattn_static EXPORT vkattn)
install(FILES ${VKA_PUBLIC_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkattn)
install(EXPORT vkattn NAMESPACE vkattn:: FILE vkattn-config.cmake DESTINATION ${VKA_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vkattn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vkattn-config-version.cmake DESTINATION ${VKA_PACKAGE_DIR})

# The pkg-config file finds its prefix from its own place, so that `cmake --install --prefix` and moved trees work.
set(VKA_PC_DIR ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${VKA_PC_DIR} OUTPUT_VARIABLE VKA_PC_TO_PREFIX)
set(VKA_PC_PREFIX "\${prefix}")
cmake_path(APPEND VKA_PC_PREFIX ${CMAKE_INSTALL_LIBDIR} OUTPUT_VARIABLE VKA_PC_LIBDIR)
cmake_path(APPEND VKA_PC_PREFIX ${CMAKE_INSTALL_INCLUDEDIR} OUTPUT_VARIABLE VKA_PC_INCLUDEDIR)
configure_file(${CMAKE_CURRENT_LIST_DIR}/vkattn.pc.in ${PROJECT_BINARY_DIR}/vkattn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vkattn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
