#!/bin/sh
# A check for HAProxy (external-check): does this node of MariaDB or MySQL take writes? A node of Galera must be Synced.
# usage: takes-writes.sh PROXY PROXY_PORT HOST PORT
PATH=/usr/sbin:/usr/bin:/sbin:/bin
state=$(mariadb --no-defaults --protocol=tcp -h "$3" -P "$4" -u root --connect-timeout=1 -BN -e \
    "SELECT @@global.read_only; SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'" 2>/dev/null | tr '\n\t' '  ')
case $state in
    '0 ' | '0 wsrep_local_state_comment Synced ') ;;
    *) exit 1 ;;
esac
