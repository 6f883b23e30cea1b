// In place of Python's own pyconfig.h, whose guard this defines: what its headers ask of one for
// 64-bit Windows. Enough to compile the core without an installation of Python for Windows.
#pragma once

#define Py_PYCONFIG_H
#define MS_WINDOWS 1
#define MS_WIN32 1
#define MS_WIN64 1
#define NT_THREADS 1
#define WITH_THREAD 1
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_SSIZE_T 1
#define HAVE_LONG_LONG 1
#define DOUBLE_IS_LITTLE_ENDIAN_IEEE754 1
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_LONG 4
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_OFF_T 4
#define SIZEOF_PID_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
