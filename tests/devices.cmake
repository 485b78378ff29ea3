# The drivers of the two software devices that tests run on.
find_file(VKA_LAVAPIPE_ICD NAMES lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json lvp_icd.json
          PATHS /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d)
find_file(VKA_SWIFTSHADER_ICD NAMES vk_swiftshader_icd.json PATHS /usr/lib/chromium /usr/lib64/chromium-browser)
if(NOT VKA_LAVAPIPE_ICD)
  message(FATAL_ERROR "The tests need Mesa's lavapipe (Debian: mesa-vulkan-drivers), or -DVKA_TESTS=OFF. "
                      "Its driver file can be named with -DVKA_LAVAPIPE_ICD=.../lvp_icd.json")
endif()
if(NOT VKA_SWIFTSHADER_ICD)
  message(FATAL_ERROR "The tests need SwiftShader (Debian: chromium-common), or -DVKA_TESTS=OFF. "
                      "Its driver file can be named with -DVKA_SWIFTSHADER_ICD=.../vk_swiftshader_icd.json")
endif()
set(VKA_DRIVERS_lavapipe ${VKA_LAVAPIPE_ICD})
set(VKA_DEVICES_lavapipe lavapipe)
set(VKA_DRIVERS_swiftshader ${VKA_SWIFTSHADER_ICD})
set(VKA_DEVICES_swiftshader swiftshader)
set(VKA_DRIVERS_both ${VKA_LAVAPIPE_ICD}:${VKA_SWIFTSHADER_ICD})
set(VKA_DEVICES_both lavapipe,swiftshader)

# vka_device_env(TEST DEVICES): the environment of an existing test: exactly those drivers, and what must be found
# (tests/support/devices.h). Newer loaders prefer VK_DRIVER_FILES, older ones know only VK_ICD_FILENAMES.
function(vka_device_env test devices)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
               "VK_ICD_FILENAMES=${VKA_DRIVERS_${devices}}" "VK_DRIVER_FILES=${VKA_DRIVERS_${devices}}"
               "VKA_TEST_DEVICES=${VKA_DEVICES_${devices}}")
endfunction()

# vka_gpu_test(NAME labels devices file.c ...): one cmocka program, run once for each of the devices (lavapipe,
# swiftshader, both; separated by semicolons) as test NAME.DEVICES. A missing device fails the test.
function(vka_gpu_test name label devices)
  vka_test_program(${name} ${ARGN})
  foreach(device ${devices})
    add_test(NAME ${name}.${device} COMMAND ${name})
    set_tests_properties(${name}.${device} PROPERTIES LABELS "${label}")
    vka_device_env(${name}.${device} ${device})
  endforeach()
endfunction()
