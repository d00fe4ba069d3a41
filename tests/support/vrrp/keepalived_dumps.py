# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keepalived 2.2.7 of Debian 12 wrote of two instances and two scripts: recorded, without the sections in between.

Three of the counts, which were 0, have other values.
"""

from __future__ import annotations

DATA = """\
------< VRRP Topology >------
 VRRP Instance = front-4
   VRRP Version = 2
   State = BACKUP
   Master router = 192.0.2.1
   Master priority = 244
   Flags:
     Using unicast
   Wantstate = BACKUP
   Number of config faults = 0
   Number of interface and track script faults = 0
   Number of track scripts init = 0
   Last transition = 1795410246.731659 (Mon Nov 23 05:04:06.731659 2026)
   Read timeout = 1795410255.861954 (Mon Nov 23 05:04:15.861954 2026)
   Master down timer = 3050781 usecs
   Interface = eth0
   Using src_ip = 192.0.2.2 (from configuration)
   Gratuitous ARP delay = 5
   Gratuitous ARP repeat = 5
   Gratuitous ARP refresh = 0
   Gratuitous ARP refresh repeat = 1
   Gratuitous ARP lower priority delay = 5
   Gratuitous ARP lower priority repeat = 5
   Down timer adverts = 3
   Send advert after receive lower priority advert = true
   Send advert after receive higher priority advert = false
   Virtual Router ID = 51
   Priority = 253
   Effective priority = 243
   Total priority = 243
   Advert interval = 1 sec
   Accept = enabled
   Preempt = enabled
   Promote_secondaries = disabled
   Authentication type = none
   Virtual IP (1):
     192.0.2.10/24 dev eth0 scope global
   Virtual IP Excluded :
     2001:db8::10 dev eth0 scope global deprecated
   Unicast TTL = 255
   Check unicast src : no
   Unicast Peer :
     192.0.2.1 min_ttl 0 max_ttl 255
   Unicast checksum compatibility = no
   fd_in 15, fd_out 16
   Tracked scripts :
     haproxy weight 0
     load weight -10
   Tracked files :
     down, weight 0
   Using smtp notification = no
   Notify deleted = Fault
   Notify priority changes = false
 VRRP Instance = six
   VRRP Version = 3
   Using Native IPv6
   State = MASTER
   Flags: none
   Wantstate = MASTER
   Number of config faults = 0
   Number of interface and track script faults = 0
   Number of track scripts init = 0
   Last transition = 1795410247.053750 (Mon Nov 23 05:04:07.053750 2026)
   Read timeout = 1795410254.095190 (Mon Nov 23 05:04:14.095190 2026)
   Master down timer = 3414062 usecs
   Interface = eth0
   Using src_ip = fe80::7866:c9ff:fe3b:2048
   Multicast address ff02::12, ifindex 2
   Gratuitous ARP delay = 5
   Gratuitous ARP repeat = 5
   Gratuitous ARP refresh = 0
   Gratuitous ARP refresh repeat = 1
   Gratuitous ARP lower priority delay = 5
   Gratuitous ARP lower priority repeat = 5
   Down timer adverts = 3
   Send advert after receive lower priority advert = true
   Send advert after receive higher priority advert = false
   Virtual Router ID = 52
   Priority = 150
   Effective priority = 150
   Total priority = 150
   Advert interval = 1000 milli-sec
   Accept = enabled
   Preempt = enabled
   Promote_secondaries = disabled
   Virtual IP (1):
     2001:db8::11 dev eth0 scope global deprecated set
   fd_in 17, fd_out 18
   Using smtp notification = no
   Notify deleted = Fault
   Notify priority changes = false
------< VRRP Scripts >------
 VRRP Script = haproxy
   Command = '/usr/bin/test' '-e' '/run/alive'
   Interval = 1 sec
   Timeout = 0 sec
   Weight = 0
   Rise = 1
   Fall = 1
   Result = 1
   Insecure = no
   Init state = unknown
   Status = GOOD
   Script uid:gid = 0:0
   VRRP instances :
   Tracking instances :
     front-4, weight 0
   State = idle
 VRRP Script = load
   Command = '/usr/bin/test' '-e' '/run/alive2'
   Interval = 1 sec
   Timeout = 0 sec
   Weight = -10
   Rise = 1
   Fall = 1
   Result = 0
   Insecure = no
   Init state = unknown
   Status = BAD
   Script uid:gid = 0:0
   VRRP instances :
   Tracking instances :
     front-4, weight -10
   State = idle
------< VRRP Track files >------
 Track file = down
   File = /run/down
   Status = 0
   Weight = 1
   Tracking instances :
     front-4, weight 0
"""

STATISTICS = """\
VRRP Instance: front-4
  Advertisements:
    Received: 7
    Sent: 1
  Became master: 1
  Released master: 1
  Packet Errors:
    Length: 0
    TTL: 2
    Invalid Type: 0
    Advertisement Interval: 0
    Address List: 0
  Authentication Errors:
    Invalid Type: 0
    Type Mismatch: 1
    Failure: 3
  Priority Zero:
    Received: 0
    Sent: 0
VRRP Instance: six
  Advertisements:
    Received: 0
    Sent: 7
  Became master: 1
  Released master: 0
  Packet Errors:
    Length: 0
    TTL: 0
    Invalid Type: 0
    Advertisement Interval: 0
    Address List: 0
  Authentication Errors:
    Invalid Type: 0
    Type Mismatch: 0
    Failure: 0
  Priority Zero:
    Received: 0
    Sent: 0
"""
