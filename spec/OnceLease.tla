------------------------------- MODULE OnceLease -------------------------------
(* Messages between nodes and a store that get lost, come late, twice, or in      *)
(* another order; nodes that crash and begin anew.  net never shrinks: what is in *)
(* it may be delivered at any time, any number of times, or never.  The store     *)
(* keeps a row for each name: the number of its last request, what that got, and  *)
(* how much is out.  Requests and returns share one sequence of numbers.          *)
(*                                                                                *)
(* Credit dies when the window turns, at once for all: see WindowLease.           *)
EXTENDS Integers, FiniteSets
CONSTANTS Nodes, Limit, Batch, Windows, Numbers, Crashes,
          KnowRequest,  \* guard: the store gives the same answer to the same number
          KnowAnswer,   \* guard: a node takes the answer to its open number, once
          CreditOnce,   \* guard: a grant is credited once, not for each call that waits
          TagAnswer,    \* guard: a grant of a window that is over is dead
          TagReturn,    \* guard: units go back only into their window
          KnowReturn,   \* guard: the store takes a return once
          Fresh         \* guard: a node that begins anew has a name of its own
VARIABLES win, used, adm,
          rows, rwin,                  \* the ledger, and the window that it is of
          life, sent, open, cr,        \* of each node
          net
vars == <<win, used, adm, rows, rwin, life, sent, open, cr, net>>
store == <<used, rows, rwin>>
node == <<life, sent, open, cr>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

Names == Nodes \X (0..Crashes)
Name(n) == <<n, IF Fresh THEN life[n] ELSE 0>>
None == [i |-> 0, got |-> 0, out |-> 0]
Empty == [x \in Names |-> None]
Zero == [n \in Nodes |-> 0]

Init == /\ win = 1 /\ used = 0 /\ adm = 0 /\ rows = Empty /\ rwin = 0
        /\ life = Zero /\ sent = Zero /\ open = Zero /\ cr = Zero /\ net = {}

Ask(n) == /\ open[n] = 0 /\ sent[n] < Numbers
          /\ sent' = [sent EXCEPT ![n] = @ + 1] /\ open' = [open EXCEPT ![n] = sent'[n]]
          /\ net' = net \cup {[t |-> "ask", x |-> Name(n), i |-> sent'[n], k |-> 0, w |-> 0,
                               spent |-> cr[n] = 0]}
          /\ UNCHANGED <<win, adm, life, cr>> /\ UNCHANGED store

\* The row of a name, as far as it counts: a ledger of another window is forgotten.
Current == IF rwin = win THEN rows ELSE Empty
Row(x) == Current[x]
IsKnown(m) == KnowRequest /\ Row(m.x).i >= m.i
Grant(m, k) == [t |-> "grant", x |-> m.x, i |-> m.i, k |-> k, w |-> win, spent |-> FALSE]

SayAgain(m) == /\ net' = IF Row(m.x).i = m.i /\ Row(m.x).got > 0
                         THEN net \cup {Grant(m, Row(m.x).got)} ELSE net
               /\ UNCHANGED store
Lend(m) == LET k == Min(Batch, Limit - used)
               i == Max(m.i, Row(m.x).i) IN
           /\ used' = used + k
           /\ IF k > 0
              THEN /\ rows' = [Current EXCEPT ![m.x] = [i |-> i, got |-> k, out |-> @.out + k]]
                   /\ rwin' = win /\ net' = net \cup {Grant(m, k)}
              ELSE /\ rows' = IF Row(m.x) # None /\ m.spent
                              THEN [rows EXCEPT ![m.x] = [@ EXCEPT !.i = i, !.got = 0]] ELSE rows
                   /\ UNCHANGED <<rwin, net>>
Serve(m) == /\ m.t = "ask"
            /\ IF IsKnown(m) THEN SayAgain(m) ELSE Lend(m)
            /\ UNCHANGED <<win, adm>> /\ UNCHANGED node

Accept(m, n) == /\ m.t = "grant" /\ m.x = Name(n)
                /\ KnowAnswer => open[n] > 0 /\ open[n] = m.i
                /\ open' = [open EXCEPT ![n] = 0]
                /\ LET times == IF ~CreditOnce /\ open[n] > 0 THEN 2 ELSE 1 IN
                   cr' = IF TagAnswer => m.w = win
                         THEN [cr EXCEPT ![n] = @ + times * m.k] ELSE cr
                /\ UNCHANGED <<win, adm, life, sent, net>> /\ UNCHANGED store
GiveUp(n) == /\ open[n] > 0 /\ open' = [open EXCEPT ![n] = 0]
             /\ UNCHANGED <<win, adm, life, sent, cr, net>> /\ UNCHANGED store
Spend(n) == /\ cr[n] > 0 /\ cr' = [cr EXCEPT ![n] = @ - 1] /\ adm' = adm + 1
            /\ UNCHANGED <<win, life, sent, open, net>> /\ UNCHANGED store

GiveBack(n) == /\ cr[n] > 0 /\ open[n] = 0 /\ sent[n] < Numbers
               /\ sent' = [sent EXCEPT ![n] = @ + 1]
               /\ net' = net \cup {[t |-> "back", x |-> Name(n), i |-> sent'[n], k |-> cr[n],
                                    w |-> win, spent |-> FALSE]}
               /\ cr' = [cr EXCEPT ![n] = 0]
               /\ UNCHANGED <<win, adm, life, open>> /\ UNCHANGED store
Refund(m) == /\ m.t = "back" /\ Row(m.x) # None
             /\ KnowReturn => m.i > Row(m.x).i
             /\ TagReturn => m.w = win
             /\ m.k <= Row(m.x).out
             /\ used' = used - m.k
             /\ rows' = [rows EXCEPT ![m.x] = [i |-> m.i, got |-> 0, out |-> @.out - m.k]]
             /\ UNCHANGED <<win, adm, rwin, net>> /\ UNCHANGED node

Crash(n) == /\ life[n] < Crashes /\ life' = [life EXCEPT ![n] = @ + 1]
            /\ sent' = [sent EXCEPT ![n] = 0] /\ open' = [open EXCEPT ![n] = 0]
            /\ cr' = [cr EXCEPT ![n] = 0]
            /\ UNCHANGED <<win, adm, net>> /\ UNCHANGED store
Turn == /\ win < Windows /\ win' = win + 1 /\ used' = 0 /\ adm' = 0 /\ cr' = Zero
        /\ UNCHANGED <<rows, rwin, life, sent, open, net>>

Next == \/ Turn
        \/ \E m \in net : Serve(m) \/ Refund(m) \/ \E n \in Nodes : Accept(m, n)
        \/ \E n \in Nodes : Ask(n) \/ GiveUp(n) \/ Spend(n) \/ GiveBack(n) \/ Crash(n)
Spec == Init /\ [][Next]_vars

Cap == adm + Sum(cr, Nodes) <= used            \* nothing is minted
Ledger == rwin = win => Sum([x \in Names |-> rows[x].out], Names) <= used
Reached == adm < Limit                         \* must be violated
================================================================================
