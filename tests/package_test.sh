#!/usr/bin/env bash
# The tar and the Debian package that cpack makes: unpacked into folders of their own, and used from
# there.
source "$(dirname "${BASH_SOURCE[0]}")/install_testing.sh"
cpack="$(dirname "$CMAKE")/cpack"

quietly "$cpack" --config "$ATTEND_BINARY_DIR/CPackConfig.cmake" -B "$work/packages" -G TGZ
tar=$(find "$work/packages" -maxdepth 1 -name '*.tar.gz')
mkdir "$work/an unpacked tar"
tar -xzf "$tar" -C "$work/an unpacked tar" --strip-components=1
expect "the program of the tar finds its model" "I/PRON saw/VERB a/DET saw/NOUN" \
       "$(cd / && "$work/an unpacked tar/bin/attend" tag "I saw a saw")"
quietly "$CC" -std=c99 -I "$work/an unpacked tar/include" \
        "$ATTEND_SOURCE_DIR/examples/c_client/client.c" -L "$work/an unpacked tar/lib" -lattend \
        "-Wl,-rpath,$work/an unpacked tar/lib" -o "$work/client"
expect "a program against the tar" "$tagged" \
       "$("$work/client" "$work/an unpacked tar/share/attend/models/pos-en.attend" "I saw a saw")"
echo "$(basename "$tar"): $(stat -c %s "$tar") bytes"

if ! command -v dpkg-deb > /dev/null || ! command -v dpkg-shlibdeps > /dev/null; then
  echo "skipped: dpkg-deb or dpkg-shlibdeps (dpkg-dev) is not installed"
  exit 0
fi
quietly "$cpack" --config "$ATTEND_BINARY_DIR/CPackConfig.cmake" -B "$work/packages" -G DEB
deb=$(find "$work/packages" -maxdepth 1 -name '*.deb')
dpkg-deb -x "$deb" "$work/a root"
expect "the program of the Debian package finds its model" "I/PRON saw/VERB a/DET saw/NOUN" \
       "$(cd / && "$work/a root/usr/bin/attend" tag "I saw a saw")"
depends=$(dpkg-deb -f "$deb" Depends)
for package in libc6 libdnnl libgomp1 libhwy libstdc++6; do
  if [[ $depends != *$package* ]]; then fail "the package does not depend on $package: $depends"; fi
done
echo "ok: the package depends on $depends"
expect "the package is of this version" "$("$prefix/bin/attend" --version | sed -n '1s/attend //p')" \
       "$(dpkg-deb -f "$deb" Version)"
echo "$(basename "$deb"): $(stat -c %s "$deb") bytes"
