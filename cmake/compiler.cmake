# A C++20 compiler that knows vector extensions: GCC or Clang. Without one, say so in plain words.
include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
    if(DEFINED ENV{CXX})
        set(given " (the environment variable CXX names '$ENV{CXX}', which does not work)")
    endif()
    message(
        FATAL_ERROR
            "kernelmill has a C++ core and found no C++ compiler to build it with${given}.\n"
            "Install GCC 11 or newer, or Clang 14 or newer:\n"
            "  Debian, Ubuntu:  apt install g++\n"
            "  Fedora:          dnf install gcc-c++\n"
            "  conda:           conda install -c conda-forge cxx-compiler\n"
            "or, if you have one, name it in the environment variable CXX. Then install again."
    )
endif()
enable_language(CXX)

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang"
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
)
    message(
        FATAL_ERROR
            "kernelmill needs GCC 11 or newer, or Clang 14 or newer, for C++20 and its vector "
            "extensions; found ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} at "
            "${CMAKE_CXX_COMPILER}. Install one of them and name it in the environment variable CXX."
    )
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
