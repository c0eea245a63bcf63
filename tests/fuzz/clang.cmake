# The clang that tools/install-packages brings, or another one.
find_program(VCPULSE_CLANGXX NAMES clang++-19 clang++ REQUIRED)
set(CMAKE_CXX_COMPILER ${VCPULSE_CLANGXX})  # clang 14 refuses coroutines with sanitizers
